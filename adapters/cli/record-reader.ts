import type { Readable } from 'node:stream'
import { HeadwaterError } from '../../src/index.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { appendRecord } from '../../src/model/append-input.ts'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { type Header, meteredBytesOf } from '../../src/model/record.ts'
import { decodeAppendJson } from '../../src/wire/json-append.ts'
import type { DataFormat } from '../../src/wire/vendor-headers.ts'
import { CliError, printable } from './errors.ts'

const LINE_FEED = 10
/** A line of JSON may be longer than its record: base64, escapes. */
const JSON_LINE_BYTES_MAX = 8 * 1024 * 1024
/** Makes a request of a line. */
const BEFORE_JSON = '{"records":['

export interface RecordBatch {
  /** 1 to 1,000, at most 1 MiB metered. */
  readonly records: readonly RecordInput[]
  /** Of the input. */
  readonly bytes: number
}

export interface RecordOptions {
  /** Whether a line is a JSON object. */
  readonly json: boolean
  readonly format: DataFormat
  /** Of every record that is not JSON. */
  readonly headers: readonly Header[]
}

/** Makes batches of records of the lines of an input. */
export class RecordReader {
  readonly #options: RecordOptions
  readonly #lineBytesMax: number
  #line = 0

  constructor(options: RecordOptions) {
    this.#options = options
    const headers = meteredBytesOf(options.headers, new Uint8Array())
    this.#lineBytesMax = options.json ? JSON_LINE_BYTES_MAX : BATCH_METERED_BYTES_MAX - headers
  }

  /** A batch of one record. */
  async *single(text: string): AsyncGenerator<RecordBatch> {
    const body = utf8(text)
    if (body.length > this.#lineBytesMax) throw this.#tooLong('TEXT')
    yield { records: [this.#record(body).input], bytes: body.length }
  }

  /** Yields what each chunk of the input completes, without waiting for more. Ends when the signal aborts. */
  async *batches(input: Readable, signal: AbortSignal): AsyncGenerator<RecordBatch> {
    let rest: Uint8Array[] = []
    let restBytes = 0
    try {
      for await (const chunk of input as AsyncIterable<Buffer>) {
        const end = chunk.lastIndexOf(LINE_FEED) + 1
        if (end === 0) {
          rest.push(chunk)
          restBytes += chunk.length
        } else {
          const lines = chunk.subarray(0, end)
          yield* this.#split(restBytes === 0 ? lines : Buffer.concat([...rest, lines]))
          rest = end === chunk.length ? [] : [chunk.subarray(end)]
          restBytes = chunk.length - end
        }
        if (restBytes > this.#lineBytesMax) throw this.#tooLong(`line ${this.#line + 1}`)
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof CliError) throw error
      throw new CliError(1, `cannot read the input: ${printable((error as Error).message)}`)
    }
    if (restBytes > 0 && !signal.aborted) yield* this.#split(Buffer.from(concatBytes(rest)))
  }

  *#split(chunk: Buffer): Generator<RecordBatch> {
    let records: RecordInput[] = []
    let metered = 0
    let batchStart = 0
    let start = 0
    while (start < chunk.length) {
      const feed = chunk.indexOf(LINE_FEED, start)
      const end = feed < 0 ? chunk.length : feed
      this.#line++
      if (end - start > this.#lineBytesMax) throw this.#tooLong(this.#place())
      // Not `subarray`, which takes longer.
      const line = new Uint8Array(chunk.buffer, chunk.byteOffset + start, end - start)
      const { input, meteredBytes } = this.#record(line)
      if (records.length === BATCH_RECORDS_MAX || metered + meteredBytes > BATCH_METERED_BYTES_MAX) {
        yield { records, bytes: start - batchStart }
        records = []
        metered = 0
        batchStart = start
      }
      records.push(input)
      metered += meteredBytes
      start = end + 1
    }
    yield { records, bytes: chunk.length - batchStart }
  }

  #record(line: Uint8Array): { readonly input: RecordInput; readonly meteredBytes: number } {
    const { json, headers } = this.#options
    if (json) return this.#jsonRecord(line)
    const meteredBytes = meteredBytesOf(headers, line)
    return { input: headers.length === 0 ? line : { headers, body: line }, meteredBytes }
  }

  #jsonRecord(line: Uint8Array): { readonly input: RecordInput; readonly meteredBytes: number } {
    try {
      const parts = [utf8(BEFORE_JSON), line, utf8(']}')]
      const { inputs } = decodeAppendJson(concatBytes(parts), this.#options.format)
      if (inputs.length !== 1) throw new CliError(1, `${this.#place()}: expected one JSON object`)
      const { timestamp, headers, body, meteredBytes } = appendRecord(inputs[0]!)
      return { input: { timestamp, headers, body }, meteredBytes }
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      const message = error.message.replace(
        /(?<=at character )\d+/,
        (at) => `${Number(at) - BEFORE_JSON.length}`,
      )
      throw new CliError(1, `${this.#place()}: ${printable(message)}`)
    }
  }

  #place(): string {
    return this.#line === 0 ? 'TEXT' : `line ${this.#line}`
  }

  #tooLong(what: string): CliError {
    return new CliError(1, `${what} is longer than ${this.#lineBytesMax.toLocaleString('en-US')} bytes`)
  }
}
