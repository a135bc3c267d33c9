import { type FileHandle, open, rm } from 'node:fs/promises'
import { utf8 } from '../../src/model/bytes.ts'
import {
  gzipMember,
  MEMBER_HEADER_BYTES,
  MEMBER_PLAIN_BYTES_MAX,
  memberContent,
  memberLength,
} from './gzip-members.ts'
import { type ByteSink, LineSink } from './line-sink.ts'
import { linesOf } from './lines.ts'
import { type ResumePoint, ResumeScan, startsWith } from './resume-point.ts'
import { TransferError } from './transfer-error.ts'

export interface ExportFile {
  readonly sink: LineSink
  /** What the file holds already; undefined for a new one. */
  readonly point: ResumePoint | undefined
}

const GZIP_START = 0x1f
const CHUNK_BYTES = 1024 * 1024
const FILE_START = utf8('{"headwater_export":')

/** A new file; one that exists is refused. */
export async function createExportFile(path: string, gzip: boolean): Promise<ExportFile> {
  const file = await opened(path, 'wx')
  return { sink: new LineSink(new FileSink(file, path, 0), gzip), point: undefined }
}

/** Goes on with a file behind its last whole line, or, in a compressed one, its last whole member; a file that is missing is made. */
export async function resumeExportFile(path: string, gzip: boolean): Promise<ExportFile> {
  let file: FileHandle
  try {
    file = await open(path, 'r+')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return createExportFile(path, gzip)
    throw unusable(path, error)
  }
  try {
    const { size } = await file.stat()
    const start = await readAt(file, 0, Math.min(size, FILE_START.length))
    // One byte may be all that there is of gzip's two.
    const isCompressed = size === 0 ? gzip : start[0] === GZIP_START
    const scan = new ResumeScan()
    const end = isCompressed ? await scanMembers(file, size, scan) : await scanLines(file, start, scan)
    const point = scan.point()
    // A complete one is left as it is, whatever stands behind it.
    if (!point?.isComplete) await file.truncate(end)
    return {
      sink: new LineSink(new FileSink(file, path, point?.isComplete ? size : end), isCompressed),
      point,
    }
  } catch (error) {
    await file.close()
    if (error instanceof TransferError) throw new TransferError(`${path}: ${error.message}`, { cause: error })
    throw unusable(path, error)
  }
}

/** Where the last whole line ends. */
async function scanLines(file: FileHandle, start: Uint8Array, scan: ResumeScan): Promise<number> {
  // A file that is something else must not be cut to nothing.
  if (!startsWith(FILE_START, start)) throw new TransferError('this is no export')
  let end = 0
  for await (const lines of linesOf(chunksOf(file))) {
    for (const line of lines) {
      scan.add(line)
      end = line.end
    }
  }
  return end
}

/** Where the last whole member ends. */
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
        `it was compressed by another program, or is damaged at byte ${at}: it cannot be gone on with`,
      )
    }
    if (length === undefined || at + length > size) break
    const content = await memberContent(await readAt(file, at, length))
    if (content === undefined) {
      if (at + length === size) break
      throw new TransferError(`it is damaged at byte ${at}`)
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

/** Writes behind a position, and closes the file when all of it is on the disk. A file that stays empty is removed: it would be in the way of another try. */
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
      const { bytesWritten } = await this.#usable(writing)
      written += bytesWritten
      this.#end += bytesWritten
    }
  }

  async close(): Promise<void> {
    try {
      await this.#usable(this.#file.sync())
    } finally {
      await this.#file.close()
      if (this.#end === 0) await rm(this.#path, { force: true })
    }
  }

  async #usable<Value>(call: Promise<Value>): Promise<Value> {
    try {
      return await call
    } catch (error) {
      throw unusable(this.#path, error)
    }
  }
}

async function opened(path: string, flags: 'wx'): Promise<FileHandle> {
  try {
    return await open(path, flags)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw unusable(path, error)
    throw new TransferError(`${path} exists: --resume goes on with it`)
  }
}

function unusable(path: string, cause: unknown): TransferError {
  return new TransferError(`cannot use ${path}: ${(cause as Error).message}`, { cause })
}
