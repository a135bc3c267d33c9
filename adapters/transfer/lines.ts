import { pipeline, Readable } from 'node:stream'
import { constants, createGunzip, createGzip } from 'node:zlib'
import { HeadwaterError } from '../../src/index.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { decodeEntry, type ExportEntry, encodeEntry } from './export-entry.ts'
import { ExportProgress } from './export-progress.ts'
import { TransferError } from './service.ts'

export interface Line {
  /** The first is 1. */
  readonly number: number
  /** The bytes without the line break. */
  readonly bytes: Uint8Array
  /** False for a last line without a line break. */
  readonly isComplete: boolean
}

const NEWLINE = 0x0a
const GZIP_START = 0x1f

/** A record has at most 1 MiB, and JSON escapes a control character with six bytes. */
const LINE_BYTES_MAX = 8 * 1024 * 1024

/**
 * Yields the lines of an input, grouped by chunk.
 *
 * @throws TransferError for a line of more than 8 MiB.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Line[]> {
  let number = 1
  let open: Uint8Array[] = []
  let openBytes = 0
  for await (const chunk of input) {
    const lines: Line[] = []
    for (let start = 0; start < chunk.length; ) {
      const at = chunk.indexOf(NEWLINE, start)
      const end = at === -1 ? chunk.length : at
      open.push(chunk.subarray(start, end))
      openBytes += end - start
      if (openBytes > LINE_BYTES_MAX) {
        if (lines.length > 0) yield lines
        throw new TransferError(`line ${number} is longer than ${LINE_BYTES_MAX} bytes`)
      }
      if (at !== -1) {
        lines.push({ number, bytes: concatBytes(open), isComplete: true })
        number++
        open = []
        openBytes = 0
      }
      start = end + 1
    }
    if (lines.length > 0) yield lines
  }
  if (openBytes > 0) yield [{ number, bytes: concatBytes(open), isComplete: false }]
}

/**
 * Decodes a line, and adds its entry to what came before.
 *
 * @throws TransferError with the number of the line.
 */
export function takeLine(
  { number, bytes }: Pick<Line, 'number' | 'bytes'>,
  progress: ExportProgress,
): ExportEntry {
  try {
    const entry = decodeEntry(bytes)
    progress.add(entry)
    return entry
  } catch (error) {
    if (!HeadwaterError.is(error) && !(error instanceof TransferError)) throw error
    throw new TransferError(`line ${number}: ${error.message}`)
  }
}

/** Yields the entries of an export, compressed or not. Its end is missing if the input is truncated. */
export async function* entriesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<readonly ExportEntry[]> {
  const progress = new ExportProgress()
  for await (const lines of linesOf(gunzipped(input))) {
    const complete = lines.filter(({ isComplete }) => isComplete)
    if (complete.length > 0) yield complete.map((line) => takeLine(line, progress))
  }
}

export async function* linesOfEntries(
  batches: AsyncIterable<readonly ExportEntry[]>,
): AsyncGenerator<Uint8Array> {
  for await (const entries of batches) yield utf8(entries.map((entry) => `${encodeEntry(entry)}\n`).join(''))
}

/** Compresses an output. One that fails ends with an error, after what came before. */
export function gzipped(output: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return pipeline(Readable.from(output), createGzip(), () => {})
}

/** Decompresses an input if it is gzip. A truncated input ends where it was truncated, without an error. */
export async function* gunzipped(input: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const source = input[Symbol.asyncIterator]()
  const first = await source.next()
  if (first.done) return
  const all = startingWith(first.value, source)
  if (first.value[0] !== GZIP_START) return yield* all
  const gunzip = createGunzip({ finishFlush: constants.Z_SYNC_FLUSH, chunkSize: 256 * 1024 })
  try {
    // Errors reach the consumer through the last stream.
    yield* pipeline(Readable.from(all), gunzip, () => {})
  } catch (cause) {
    if (!String((cause as { code?: unknown }).code).startsWith('Z_')) throw cause
    throw new TransferError(`the compressed input is damaged: ${(cause as Error).message}`, { cause })
  }
}

async function* startingWith(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first
  yield* { [Symbol.asyncIterator]: () => rest }
}
