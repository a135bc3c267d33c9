import { HeadwaterError } from '../../src/index.ts'
import { appendRecord, type RecordInput } from '../../src/model/append-input.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'
import type { DataFormat } from '../../src/wire/headers.ts'
import { decodeAppendJson } from '../../src/wire/json-records.ts'
import type { ByteSource } from './byte-source.ts'
import { CliError, printable } from './errors.ts'

const LINE_FEED = 10
const CARRIAGE_RETURN = 13
/** A line of JSON may be longer than its record: base64, escapes. */
const JSON_LINE_BYTES_MAX = 8 * 1024 * 1024
/** The read buffer. It grows for longer lines. */
const BUFFER_BYTES = 1024 * 1024

/** Some programs begin a text with it. It is part of no record. */
const BYTE_ORDER_MARK = Uint8Array.of(0xef, 0xbb, 0xbf)

function hasByteOrderMark(text: Uint8Array, at: number): boolean {
  return BYTE_ORDER_MARK.every((byte, i) => text[at + i] === byte)
}

/** A batch of 1 to 1,000 records, at most 1 MiB metered. */
export interface InputBatch {
  /** The records. Their memory is used again for the next batch. */
  readonly records: readonly RecordInput[]
  /** The bytes of the input. */
  readonly bytes: number
}

export interface RecordOptions {
  /** Whether a line is a JSON object. */
  readonly json: boolean
  readonly format: DataFormat
  /** The headers of every record that is not JSON. */
  readonly headers: readonly Header[]
  /** Whether empty lines are no records. */
  readonly skipEmpty: boolean
}

interface MeteredRecord {
  readonly input: RecordInput
  readonly meteredBytes: number
}

/** Makes batches of records of the lines of an input. */
export class InputReader {
  readonly #options: RecordOptions
  readonly #lineBytesMax: number
  /** The metered size of a record without its body. */
  readonly #recordBytes: number
  #line = 0

  constructor(options: RecordOptions) {
    this.#options = options
    this.#recordBytes = meteredBytesOf(options.headers, new Uint8Array())
    const recordBytesMax = BATCH_METERED_BYTES_MAX - this.#recordBytes
    this.#lineBytesMax = options.json ? JSON_LINE_BYTES_MAX : recordBytesMax
  }

  /** A batch of one record. */
  async *single(text: string): AsyncGenerator<InputBatch> {
    const body = utf8(text)
    yield { records: [this.#record(body).input], bytes: body.length }
  }

  /** Yields what each read of the input completes, without waiting for more. Ends when the signal aborts. */
  async *batches(input: ByteSource, signal: AbortSignal): AsyncGenerator<InputBatch> {
    let buffer = Buffer.allocUnsafeSlow(BUFFER_BYTES)
    /** The part of the buffer that has no line break. */
    let start = 0
    let end = 0
    for (;;) {
      if (end === buffer.length) {
        const larger = start > 0 ? buffer : Buffer.allocUnsafeSlow(2 * buffer.length)
        buffer.copy(larger, 0, start, end)
        buffer = larger
        end -= start
        start = 0
      }
      const length = await this.#read(input, buffer.subarray(end), signal)
      if (length === 0 || signal.aborted) break
      const textEnd = buffer.subarray(end, end + length).lastIndexOf(LINE_FEED) + 1
      if (textEnd > 0) {
        yield* this.#split(buffer.subarray(0, end + textEnd), start)
        start = end + textEnd
      }
      end += length
      if (start === end) start = end = 0
      else if (end - start > this.#lineBytesMax) throw this.#tooLong(`line ${this.#line + 1}`)
    }
    if (end > start && !signal.aborted) yield* this.#split(buffer.subarray(0, end), start)
  }

  async #read(input: ByteSource, into: Uint8Array, signal: AbortSignal): Promise<number> {
    try {
      return await input.read(into)
    } catch (error) {
      if (signal.aborted) return 0
      throw new CliError(1, `cannot read the input: ${printable((error as Error).message)}`)
    }
  }

  /** @param text Whole lines from `from` on; the last may lack its line break. */
  *#split(text: Buffer, from: number): Generator<InputBatch> {
    let records: RecordInput[] = []
    let metered = 0
    let batchStart = from
    let start = this.#line === 0 && hasByteOrderMark(text, from) ? from + BYTE_ORDER_MARK.length : from
    while (start < text.length) {
      const feed = text.indexOf(LINE_FEED, start)
      const next = feed < 0 ? text.length : feed + 1
      const hasReturn = feed > start && text[feed - 1] === CARRIAGE_RETURN
      const end = feed < 0 ? text.length : hasReturn ? feed - 1 : feed
      this.#line++
      if (end === start && this.#options.skipEmpty) {
        start = next
        continue
      }
      // Not `subarray`, which takes longer.
      const line = new Uint8Array(text.buffer, text.byteOffset + start, end - start)
      let record: MeteredRecord
      try {
        record = this.#record(line)
      } catch (error) {
        // The lines before it are appended.
        if (records.length > 0) yield { records, bytes: start - batchStart }
        throw error
      }
      const { input, meteredBytes } = record
      if (records.length === BATCH_RECORDS_MAX || metered + meteredBytes > BATCH_METERED_BYTES_MAX) {
        yield { records, bytes: start - batchStart }
        records = []
        metered = 0
        batchStart = start
      }
      records.push(input)
      metered += meteredBytes
      start = next
    }
    if (records.length > 0) yield { records, bytes: text.length - batchStart }
  }

  #record(line: Uint8Array): MeteredRecord {
    const { json, headers } = this.#options
    if (line.length > this.#lineBytesMax) throw this.#tooLong(this.#place())
    if (json) return this.#jsonRecord(line)
    return { input: { headers, body: line }, meteredBytes: this.#recordBytes + line.length }
  }

  #jsonRecord(line: Uint8Array): MeteredRecord {
    try {
      const parts = [utf8('{"records":['), line, utf8(']}')]
      const { inputs } = decodeAppendJson(concatBytes(parts), this.#options.format)
      if (inputs.length !== 1) throw new CliError(1, `${this.#place()}: expected one JSON object`)
      const { timestamp, headers, body, meteredBytes } = appendRecord(inputs[0]!)
      return { input: { timestamp, headers, body }, meteredBytes }
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      throw new CliError(1, `${this.#place()}: ${printable(error.message)}`)
    }
  }

  #place(): string {
    return this.#line === 0 ? 'TEXT' : `line ${this.#line}`
  }

  #tooLong(what: string): CliError {
    return new CliError(1, `${what} is longer than ${this.#lineBytesMax.toLocaleString('en-US')} bytes`)
  }
}
