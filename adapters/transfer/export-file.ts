import { type FileHandle, open, rm } from 'node:fs/promises'
import { utf8 } from '../../src/model/bytes.ts'
import {
  gzipMember,
  MEMBER_HEADER_BYTES,
  MEMBER_PLAIN_BYTES_MAX,
  memberContent,
  memberLength,
} from './gzip.ts'
import { type ByteSink, LineSink, linesOf } from './lines.ts'
import { type ResumePoint, ResumeScan, startsWith } from './resume-point.ts'
import { TransferError } from './transfer-error.ts'

export interface ExportFile {
  readonly sink: LineSink
  /** How far the file goes; undefined for a new one. */
  readonly point: ResumePoint | undefined
}

const GZIP_START = 0x1f
const CHUNK_BYTES = 1024 * 1024
const FILE_START = utf8('{"headwater_export":')

/** Creates a file. Rejects with {@link TransferError} if it exists. */
export async function createExportFile(path: string, gzip: boolean): Promise<ExportFile> {
  const file = await create(path)
  return { sink: new LineSink(new FileSink(file, path, 0), gzip), point: undefined }
}

/** Opens a file to continue after its last complete line or gzip member. Creates a missing file. */
export async function resumeExportFile(path: string, gzip: boolean): Promise<ExportFile> {
  let file: FileHandle
  try {
    file = await open(path, 'r+')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return createExportFile(path, gzip)
    throw fileError(path, error)
  }
  try {
    const { size } = await file.stat()
    const start = await readAt(file, 0, Math.min(size, FILE_START.length))
    // Compare one byte only: a truncated file may have no more of gzip's two.
    const isCompressed = size === 0 ? gzip : start[0] === GZIP_START
    const scan = new ResumeScan()
    const end = isCompressed ? await scanMembers(file, size, scan) : await scanLines(file, start, scan)
    const point = scan.point()
    // A complete export stays unchanged, whatever follows it.
    if (!point?.isComplete) await file.truncate(end)
    return {
      sink: new LineSink(new FileSink(file, path, point?.isComplete ? size : end), isCompressed),
      point,
    }
  } catch (error) {
    await file.close()
    if (error instanceof TransferError) throw new TransferError(`${path}: ${error.message}`, { cause: error })
    throw fileError(path, error)
  }
}

/** Returns where the last complete line ends. */
async function scanLines(file: FileHandle, start: Uint8Array, scan: ResumeScan): Promise<number> {
  // Another kind of file must not be truncated.
  if (!startsWith(FILE_START, start)) throw new TransferError('not an export')
  let end = 0
  for await (const lines of linesOf(chunksOf(file))) {
    for (const line of lines) {
      scan.add(line)
      end = line.end
    }
  }
  return end
}

/** Returns where the last complete gzip member ends. */
async function scanMembers(file: FileHandle, size: number, scan: ResumeScan): Promise<number> {
  const model = await gzipMember(new Uint8Array(0))
  let at = 0
  let number = 0
  while (at < size) {
    const header = await readAt(file, at, Math.min(MEMBER_HEADER_BYTES, size - at))
    const length = memberLength(header)
    const fixed = Math.min(header.length, MEMBER_HEADER_BYTES - 4)
    if (!startsWith(header, model.subarray(0, fixed)) || (length ?? 0) > MEMBER_PLAIN_BYTES_MAX) {
      throw new TransferError(
        `compressed by another program or damaged at byte ${at}; it cannot be continued`,
      )
    }
    if (length === undefined || at + length > size) break
    const content = await memberContent(await readAt(file, at, length))
    if (content === undefined) {
      if (at + length === size) break
      throw new TransferError(`damaged at byte ${at}`)
    }
    for await (const lines of linesOf(once(content))) {
      for (const line of lines) scan.add({ ...line, number: ++number })
    }
    at += length
  }
  return at
}

async function* once(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content
}

async function* chunksOf(file: FileHandle): AsyncGenerator<Uint8Array> {
  for (let at = 0; ; ) {
    const chunk = await readAt(file, at, CHUNK_BYTES)
    if (chunk.length === 0) return
    at += chunk.length
    yield chunk
  }
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(length)
  let filled = 0
  while (filled < length) {
    const { bytesRead } = await file.read(bytes, filled, length - filled, at + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return bytes.subarray(0, filled)
}

/**
 * Writes from a position on, and syncs before closing. Removes a file that stays empty, so that a retry can
 * create it.
 */
class FileSink implements ByteSink {
  readonly #file: FileHandle
  readonly #path: string
  #end: number

  constructor(file: FileHandle, path: string, end: number) {
    this.#file = file
    this.#path = path
    this.#end = end
  }

  async write(bytes: Uint8Array): Promise<void> {
    let written = 0
    while (written < bytes.length) {
      const writing = this.#file.write(bytes, written, bytes.length - written, this.#end)
      const { bytesWritten } = await this.#withPath(writing)
      written += bytesWritten
      this.#end += bytesWritten
    }
  }

  async close(): Promise<void> {
    try {
      await this.#withPath(this.#file.sync())
    } finally {
      await this.#file.close()
      if (this.#end === 0) await rm(this.#path, { force: true })
    }
  }

  async #withPath<Value>(call: Promise<Value>): Promise<Value> {
    try {
      return await call
    } catch (error) {
      throw fileError(this.#path, error)
    }
  }
}

async function create(path: string): Promise<FileHandle> {
  try {
    // Encrypted records are decrypted in it.
    return await open(path, 'wx', 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileError(path, error)
    throw new TransferError(`${path} already exists; continue it with \`--resume\``)
  }
}

function fileError(path: string, cause: unknown): TransferError {
  return new TransferError(`cannot access ${path}: ${(cause as Error).message}`, { cause })
}
