import { createHash, randomUUID } from 'node:crypto'
import { mkdir, readdir, readFile, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { crc32 } from 'node:zlib'

const CHECKSUM_BYTES = 4
/** A process looks for what to remove when it has written this share of the limit. */
const WRITTEN_SHARE = 1 / 16

/**
 * Keeps parts of objects as files of a directory, which processes and storages may share. A file appears
 * complete and never changes, and whatever cannot be read or does not match its checksum is read from the
 * bucket again.
 */
export class DiskCache {
  readonly #directory: string
  readonly #bytesMax: number
  /** How much was written since it last looked for what to remove. */
  #written = Number.POSITIVE_INFINITY

  private constructor(directory: string, bytesMax: number) {
    this.#directory = directory
    this.#bytesMax = bytesMax
  }

  /** Creates the directory for its owner only if needed. */
  static async open(directory: string, bytesMax: number): Promise<DiskCache> {
    const path = resolve(directory)
    await mkdir(path, { recursive: true, mode: 0o700 })
    return new DiskCache(path, bytesMax)
  }

  /** Resolves to the part, which has so many bytes. No other part has its `id`, in any storage. */
  async read(id: string, bytes: number, fetch: () => Promise<Buffer>): Promise<Buffer> {
    const name = createHash('sha256').update(id).digest('hex')
    const path = join(this.#directory, name)
    const kept = await this.#kept(path, bytes)
    if (kept !== undefined) return kept
    const found = await fetch()
    // A full disk is no reason to fail.
    await this.#keep(path, found).catch(() => {})
    return found
  }

  async #kept(path: string, bytes: number): Promise<Buffer | undefined> {
    const file = await readFile(path).catch(() => undefined)
    if (file?.length !== CHECKSUM_BYTES + bytes) return undefined
    const data = file.subarray(CHECKSUM_BYTES)
    if (crc32(data) !== file.readUInt32LE()) return undefined
    const now = new Date()
    await utimes(path, now, now).catch(() => {})
    return data
  }

  async #keep(path: string, data: Buffer): Promise<void> {
    const file = Buffer.alloc(CHECKSUM_BYTES + data.length)
    file.writeUInt32LE(crc32(data))
    data.copy(file, CHECKSUM_BYTES)
    const temporary = `${path}.${randomUUID()}`
    try {
      await writeFile(temporary, file, { mode: 0o600, flag: 'wx' })
      await rename(temporary, path)
    } catch (error) {
      await unlink(temporary).catch(() => {})
      throw error
    }
    this.#written += file.length
    if (this.#written < this.#bytesMax * WRITTEN_SHARE) return
    this.#written = 0
    await this.#removeOldest()
  }

  /** Removes what was not read for the longest time, also of other processes. */
  async #removeOldest(): Promise<void> {
    const names = (await readdir(this.#directory)).filter((name) => /^[0-9a-f]{64}(\.|$)/.test(name))
    const files = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#directory, name)
        const about = await stat(path).catch(() => undefined)
        return { path, bytes: about?.size ?? 0, readAt: about?.mtimeMs ?? 0 }
      }),
    )
    let left = this.#bytesMax * (1 - WRITTEN_SHARE)
    for (const { path, bytes } of files.sort((a, b) => b.readAt - a.readAt)) {
      left -= bytes
      if (left < 0) await unlink(path).catch(() => {})
    }
  }
}
