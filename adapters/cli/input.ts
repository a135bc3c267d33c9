import { fstatSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { type Readable, Writable } from 'node:stream'
import { HeadwaterError } from '../../src/index.ts'
import { appendRecord, BatchSize, type RecordInput } from '../../src/model/append-input.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { RECORD_METERED_BYTES_MAX } from '../../src/model/limits.ts'
import { type AppendRecord, type Header, meteredBytesOf } from '../../src/model/record.ts'
import type { DataFormat } from '../../src/wire/headers.ts'
import { decodeAppendJson } from '../../src/wire/json-records.ts'
import { type Line, linesOf } from '../transfer/lines.ts'
import type { CliContext } from './context.ts'
import { CliError, printable, quotePath, redact } from './errors.ts'

/** Records that fit into one append. */
type InputBatch = readonly RecordInput[]

export interface LineOptions {
  /** The form of JSON lines; undefined if a line is the body. */
  readonly json: DataFormat | undefined
  /** The headers of every record that is not JSON. */
  readonly headers: readonly Header[]
  /** Whether empty lines are no records. */
  readonly skipEmpty: boolean
}

const CARRIAGE_RETURN = 13
/** Some programs begin a text with it. It is part of no record. */
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf)

export async function* singleBatch(text: string, options: LineOptions): AsyncGenerator<InputBatch> {
  yield* batchesOf([recordOf(utf8(text), 'TEXT', options)])
}

/** Yields what each chunk of the input completes, without waiting for more, until it ends or is destroyed. */
export async function* lineBatches(input: Input, options: LineOptions): AsyncGenerator<InputBatch> {
  function* records(lines: readonly Line[]): Generator<AppendRecord> {
    for (const { number, bytes, isComplete } of lines) {
      // The end of a line that was interrupted is not known.
      if (!isComplete && !input.stream.readableEnded) return
      const hasMark = number === 1 && BYTE_ORDER_MARK.equals(bytes.subarray(0, BYTE_ORDER_MARK.length))
      const start = hasMark ? BYTE_ORDER_MARK.length : 0
      const line = bytes.subarray(start, bytes.at(-1) === CARRIAGE_RETURN ? -1 : bytes.length)
      if (line.length > 0 || !options.skipEmpty) yield recordOf(line, `line ${number}`, options)
    }
  }
  for await (const lines of linesOf(chunksOf(input))) yield* batchesOf(records(lines))
}

export interface Input {
  readonly stream: Readable
  /** The size of a file in bytes. */
  readonly size: number | undefined
  readonly isTerminal: boolean
  /** How many bytes {@link chunksOf} has yielded. */
  bytesRead: number
}

/** Yields the chunks of an input until it ends or is destroyed. Rejects with the error that destroyed it. */
export async function* chunksOf(input: Input): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of input.stream) {
      input.bytesRead += chunk.length
      yield chunk
    }
  } catch (error) {
    const { code, message, syscall } = error as NodeJS.ErrnoException
    if (code === 'ERR_STREAM_PREMATURE_CLOSE') return
    throw syscall === undefined ? error : new CliError(1, `cannot read the input: ${printable(message)}`)
  }
}

/** Reads of a file are as large as a batch. */
const FILE_CHUNK_BYTES = 1024 * 1024

/** Opens a file, or standard input if there is no path. Rejects with {@link CliError}. */
export async function openInput(
  path: string | undefined,
  { input }: Pick<CliContext, 'input'>,
): Promise<Input> {
  if (path === undefined) {
    const stream = input()
    const stats = stream.fd === undefined || stream.isTTY ? undefined : fstatSync(stream.fd)
    const size = stats?.isFile() ? stats.size : undefined
    return { stream, size, isTerminal: stream.isTTY ?? false, bytesRead: 0 }
  }
  let file: FileHandle | undefined
  try {
    file = await open(path, 'r')
    const stats = await file.stat()
    if (stats.isDirectory()) throw new CliError(1, `${quotePath(path)} is a directory`)
    const stream = file.createReadStream({ highWaterMark: FILE_CHUNK_BYTES })
    const size = stats.isFile() ? stats.size : undefined
    return { stream, size, isTerminal: false, bytesRead: 0 }
  } catch (error) {
    await file?.close()
    const { code, message } = error as NodeJS.ErrnoException
    if (error instanceof CliError) throw error
    if (code === 'ENOENT') throw new CliError(1, `file ${quotePath(path)} does not exist`)
    throw new CliError(1, `cannot read ${quotePath(path)}: ${redact(message, path)}`)
  }
}

/**
 * Resolves to the first line of the input that is not empty, or to `''` at its end.
 *
 * @param isHidden Whether the line is not shown while it is typed.
 */
export async function answerFrom(input: ReturnType<CliContext['input']>, isHidden = false): Promise<string> {
  const output = isHidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : undefined
  const lines = createInterface({ input, output, terminal: isHidden && input.isTTY === true })
  try {
    for await (const line of lines) if (line.trim() !== '' || !isHidden) return line.trim()
    return ''
  } finally {
    lines.close()
  }
}

/** Joins records to batches. Those before one that is not valid are yielded before its error. */
function* batchesOf(records: Iterable<AppendRecord>): Generator<InputBatch> {
  let batch: RecordInput[] = []
  let size = new BatchSize()
  let failure: unknown
  try {
    for (const record of records) {
      if (!size.hasRoomFor(record)) {
        yield batch
        batch = []
        size = new BatchSize()
      }
      const { timestamp, headers, body } = record
      batch.push({ timestamp, headers, body })
      size.add(record)
    }
  } catch (error) {
    failure = error
  }
  if (batch.length > 0) yield batch
  if (failure !== undefined) throw failure
}

function recordOf(line: Uint8Array, place: string, { json, headers }: LineOptions): AppendRecord {
  const bytesMax = RECORD_METERED_BYTES_MAX - meteredBytesOf(headers, new Uint8Array())
  if (json === undefined && line.length > bytesMax) {
    throw new CliError(1, `${place} is longer than ${bytesMax.toLocaleString('en-US')} bytes`)
  }
  try {
    if (json === undefined) return appendRecord({ headers, body: line })
    const { inputs } = decodeAppendJson(concatBytes([utf8('{"records":['), line, utf8(']}')]), json)
    if (inputs.length !== 1) throw new CliError(1, `${place}: expected one JSON object`)
    return appendRecord(inputs[0]!)
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw new CliError(1, `${place}: ${printable(error.message)}`)
  }
}
