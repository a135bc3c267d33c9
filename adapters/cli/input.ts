import { randomInt, randomUUID } from 'node:crypto'
import { fstatSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { HeadwaterError } from '../../src/index.ts'
import { appendRecord, type RecordInput } from '../../src/model/append-input.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'
import type { DataFormat } from '../../src/wire/headers.ts'
import { timeText } from '../../src/wire/json.ts'
import { decodeAppendJson } from '../../src/wire/json-records.ts'
import { type CliContext, delay } from './context.ts'
import { CliError, printable, quotePath, redact } from './errors.ts'
import { compileFormat, type Fields } from './record-format.ts'

/** A batch of 1 to 1,000 records, at most 1 MiB metered. */
export interface InputBatch {
  readonly records: readonly RecordInput[]
  /** The bytes of the input. */
  readonly bytes: number
}

export interface LineOptions {
  /** The form of JSON lines; undefined if a line is the body. */
  readonly json: DataFormat | undefined
  /** The headers of every record that is not JSON. */
  readonly headers: readonly Header[]
  /** Whether empty lines are no records. */
  readonly skipEmpty: boolean
}

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
/** A line of JSON may be longer than its record: base64, escapes. */
const JSON_LINE_BYTES_MAX = 8 * 1024 * 1024
/** Some programs begin a text with it. It is part of no record. */
const BYTE_ORDER_MARK = Buffer.of(0xef, 0xbb, 0xbf)

/** Yields a batch of one record. */
export async function* singleBatch(text: string, options: LineOptions): AsyncGenerator<InputBatch> {
  const { record, bytes } = recordOf(utf8(text), 'TEXT', options)
  yield { records: [record], bytes }
}

/** Yields what each chunk of the input completes, without waiting for more, until it ends or is destroyed. */
export async function* lineBatches(input: Readable, options: LineOptions): AsyncGenerator<InputBatch> {
  /** How many lines were read. */
  let count = 0
  /** The pieces of a line that has not ended. */
  let open: Buffer[] = []
  let openBytes = 0

  function* recordsOf(text: Buffer): Generator<MeteredRecord> {
    const hasMark = count === 0 && text.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)
    for (let start = hasMark ? BYTE_ORDER_MARK.length : 0; start < text.length; ) {
      const feed = text.indexOf(LINE_FEED, start)
      const end = feed < 0 ? text.length : feed
      const hasReturn = feed > start && text[feed - 1] === CARRIAGE_RETURN
      const line = text.subarray(start, hasReturn ? end - 1 : end)
      start = end + 1
      count++
      if (line.length > 0 || !options.skipEmpty) yield recordOf(line, `line ${count}`, options)
    }
  }

  for await (const chunk of chunksOf(input)) {
    const end = chunk.lastIndexOf(LINE_FEED) + 1
    if (end > 0) {
      yield* batchesOf(recordsOf(Buffer.concat([...open, chunk.subarray(0, end)])))
      open = []
      openBytes = 0
    }
    open.push(chunk.subarray(end))
    openBytes += chunk.length - end
    if (openBytes > lineBytesMax(options)) throw tooLong(`line ${count + 1}`, options)
  }
  // The end of a line that was interrupted is not known.
  if (input.readableEnded) yield* batchesOf(recordsOf(Buffer.concat(open)))
}

/** Yields the chunks of an input until it ends or is destroyed. Rejects with the error that destroyed it. */
export async function* chunksOf(input: Readable): AsyncGenerator<Buffer> {
  try {
    yield* input
  } catch (error) {
    const { code, message, syscall } = error as NodeJS.ErrnoException
    if (code === 'ERR_STREAM_PREMATURE_CLOSE') return
    throw syscall === undefined ? error : new CliError(1, `cannot read the input: ${printable(message)}`)
  }
}

export interface Input {
  readonly stream: Readable
  /** The size of a file in bytes. */
  readonly size: number | undefined
  readonly isTerminal: boolean
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
    return { stream, size: stats?.isFile() ? stats.size : undefined, isTerminal: stream.isTTY ?? false }
  }
  let file: FileHandle | undefined
  try {
    file = await open(path, 'r')
    const stats = await file.stat()
    if (stats.isDirectory()) throw new CliError(1, `${quotePath(path)} is a directory`)
    const stream = file.createReadStream({ highWaterMark: FILE_CHUNK_BYTES })
    return { stream, size: stats.isFile() ? stats.size : undefined, isTerminal: false }
  } catch (error) {
    await file?.close()
    const { code, message } = error as NodeJS.ErrnoException
    if (error instanceof CliError) throw error
    if (code === 'ENOENT') throw new CliError(1, `file ${quotePath(path)} does not exist`)
    throw new CliError(1, `cannot read ${quotePath(path)}: ${redact(message, path)}`)
  }
}

interface MeteredRecord {
  readonly record: RecordInput
  readonly meteredBytes: number
  /** The bytes of the input. */
  readonly bytes: number
}

/** Joins records to batches. Those before one that is not valid are yielded before its error. */
function* batchesOf(inputs: Iterable<MeteredRecord>): Generator<InputBatch> {
  let records: RecordInput[] = []
  let metered = 0
  let inputBytes = 0
  try {
    for (const { record, meteredBytes, bytes } of inputs) {
      if (records.length === BATCH_RECORDS_MAX || metered + meteredBytes > BATCH_METERED_BYTES_MAX) {
        yield { records, bytes: inputBytes }
        records = []
        metered = 0
        inputBytes = 0
      }
      records.push(record)
      metered += meteredBytes
      inputBytes += bytes
    }
  } catch (error) {
    if (records.length > 0) yield { records, bytes: inputBytes }
    throw error
  }
  if (records.length > 0) yield { records, bytes: inputBytes }
}

function recordOf(line: Uint8Array, place: string, options: LineOptions): MeteredRecord {
  const { json, headers } = options
  if (line.length > lineBytesMax(options)) throw tooLong(place, options)
  const bytes = line.length + 1
  if (json === undefined) {
    return { record: { headers, body: line }, meteredBytes: meteredBytesOf(headers, line), bytes }
  }
  try {
    const { inputs } = decodeAppendJson(concatBytes([utf8('{"records":['), line, utf8(']}')]), json)
    if (inputs.length !== 1) throw new CliError(1, `${place}: expected one JSON object`)
    const { timestamp, headers, body, meteredBytes } = appendRecord(inputs[0]!)
    return { record: { timestamp, headers, body }, meteredBytes, bytes }
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw new CliError(1, `${place}: ${printable(error.message)}`)
  }
}

function lineBytesMax({ json, headers }: LineOptions): number {
  if (json !== undefined) return JSON_LINE_BYTES_MAX
  return BATCH_METERED_BYTES_MAX - meteredBytesOf(headers, new Uint8Array())
}

function tooLong(place: string, options: LineOptions): CliError {
  return new CliError(1, `${place} is longer than ${lineBytesMax(options).toLocaleString('en-US')} bytes`)
}

/** The values that differ between generated records. */
interface Generated {
  /** The number of the record, beginning with 1. */
  readonly index: number
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

const RANDOM_LETTERS = 10
const RANDOM_MAX = 100
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** The fields of the TEXT of `append --count`. */
export const GENERATED_FIELDS: Fields<Generated> = {
  i: ['number of the record, from 1', ({ index }) => String(index)],
  T: ['time in milliseconds since 1970', ({ now }) => String(now)],
  D: ['date and time, such as 2030-01-31T12:00:00.5Z', ({ now }) => timeText(now)],
  u: ['random UUID', () => randomUUID()],
  n: [`random number from 0 to ${RANDOM_MAX}`, () => String(randomInt(RANDOM_MAX + 1))],
  r: [
    `${RANDOM_LETTERS} random letters and digits`,
    () => Array.from({ length: RANDOM_LETTERS }, () => LETTERS[randomInt(LETTERS.length)]).join(''),
  ],
}

/** Records that a command makes. */
export interface Generation {
  readonly partsOf: (generated: Generated) => readonly Uint8Array[]
  readonly headers: readonly Header[]
  /** Infinity until the signal. */
  readonly count: number
  /** Records a second; infinity for as many as are accepted. */
  readonly rate: number
}

/** @throws CliError with exit code 2 for an invalid text. */
export function generationOf(
  text: string,
  headers: readonly Header[],
  count = Infinity,
  rate = Infinity,
): Generation {
  return { partsOf: compileFormat(text, 'TEXT', GENERATED_FIELDS), headers, count, rate }
}

/** The shortest step in which records are due if there is a rate. */
const STEP_MS = 10

/** Yields records when they are due. Ends when the signal aborts. */
export async function* generatedBatches(
  { partsOf, headers, count, rate }: Generation,
  { clock, now }: Pick<CliContext, 'clock' | 'now'>,
  signal: AbortSignal,
): AsyncGenerator<InputBatch> {
  function* records(from: number, to: number): Generator<MeteredRecord> {
    for (let index = from + 1; index <= to; index++) {
      const body = concatBytes(partsOf({ index, now: clock.now() }))
      yield { record: { headers, body }, meteredBytes: meteredBytesOf(headers, body), bytes: body.length }
    }
  }
  const startedAt = now()
  for (let made = 0; made < count && !signal.aborted; ) {
    const elapsed = now() - startedAt
    // The first record is due at once.
    const due = rate === Infinity ? made + BATCH_RECORDS_MAX : 1 + Math.floor((elapsed * rate) / 1000)
    const end = Math.min(count, due)
    if (end > made) yield* batchesOf(records(made, end))
    else await delay(Math.max(STEP_MS, (made * 1000) / rate - elapsed), clock, signal)
    made = Math.max(made, end)
  }
}
