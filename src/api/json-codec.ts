import { lossyTextOf, textOf } from '../model/bytes.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { isCommandShaped, type SequencedRecord } from '../model/record.ts'
import { assertSignal } from '../model/validation.ts'
import { unlessAborted } from '../runtime/abort.ts'
import { andThen, isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { SerialQueue } from '../runtime/queues.ts'
import { type CallOptions, signalOf } from './call-options.ts'

/**
 * A schema of Standard Schema v1 (https://standardschema.dev), such as those of zod, valibot and arktype: the
 * part of the interface that headwater uses.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    /** Validates a value, and may transform it. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>
    /** The types of the schema; absent at run time. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined
  }
}

/** The result of a validation: a value, or issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The first issue with its path, for messages. */
export function issueText([issue]: readonly StandardIssue[]): string {
  const path = (issue?.path ?? []).map((part) => String(typeof part === 'object' ? part.key : part))
  const message = issue?.message ?? 'does not match the schema'
  return path.length === 0 ? message : `\`${path.join('.')}\`: ${message}`
}

/** Converts values to JSON and back, and validates them by a schema, if there is one. */
export class JsonCodec<Value> {
  readonly schema: StandardSchema<unknown, Value> | undefined

  /** Throws `invalid` for an object that is not a schema. */
  constructor(schema: StandardSchema<unknown, Value> | undefined) {
    const standard = Object(schema)['~standard']
    if (schema !== undefined && (standard?.version !== 1 || typeof standard.validate !== 'function')) {
      throw invalid('`schema` must be a Standard Schema, as zod and valibot have them', 'schema')
    }
    this.schema = schema
  }

  /** Throws or rejects with `invalid`. Synchronous unless the schema is not. */
  encode(value: unknown): MaybePromise<string> {
    return andThen(this.#validate(value), (result) => {
      if (result.issues === undefined) return jsonOf(result.value)
      throw new HeadwaterError(
        'invalid',
        `the value does not match the schema: ${issueText(result.issues)}`,
        {
          field: 'value',
          cause: result.issues,
        },
      )
    })
  }

  /** Rejects with `undecodable_record`. Commands are left out. */
  async decode(records: readonly SequencedRecord[]): Promise<JsonRecord<Value>[]> {
    const decoded: JsonRecord<Value>[] = []
    for (const { seqNum, timestamp, headers, body } of records) {
      if (isCommandShaped(headers)) continue
      const validated = this.#validate(parsedBody(body, seqNum))
      const result = isPromise(validated) ? await validated : validated
      if (result.issues !== undefined) {
        throw undecodable(seqNum, `does not match the schema: ${issueText(result.issues)}`, result.issues)
      }
      decoded.push({
        seqNum,
        timestamp,
        headers: headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const),
        value: result.value,
      })
    }
    return decoded
  }

  #validate(value: unknown): MaybePromise<StandardResult<Value>> {
    return this.schema === undefined ? { value: value as Value } : this.schema['~standard'].validate(value)
  }
}

/** Encodes each value. Throws or rejects with the first error. Synchronous unless `encode` is not. */
export function encodeEach(
  values: readonly unknown[],
  encode: (value: unknown) => MaybePromise<string>,
): MaybePromise<readonly string[]> {
  const bodies = Array.from(values, (value) => {
    const body = encode(value)
    // Nothing else handles its rejection if a later value throws.
    if (isPromise(body)) body.catch(() => {})
    return body
  })
  return bodies.some(isPromise) ? Promise.all(bodies) : (bodies as string[])
}

/** Throws `invalid` for a value that JSON cannot represent or would silently change. */
function jsonOf(value: unknown): string {
  let text: string | undefined
  try {
    text = JSON.stringify(value, assertRepresentable)
  } catch (cause) {
    if (HeadwaterError.is(cause)) throw cause
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new HeadwaterError('invalid', `the value is not JSON: ${reason}`, { field: 'value', cause })
  }
  if (text === undefined) throw notJson('undefined')
  return text
}

function assertRepresentable(this: unknown, key: string, value: unknown): unknown {
  const type = typeof value
  const isLost =
    type === 'function' ||
    type === 'symbol' ||
    type === 'bigint' ||
    (type === 'number' && !Number.isFinite(value)) ||
    // In an object, undefined is the usual way to leave a member out.
    (type === 'undefined' && Array.isArray(this)) ||
    (value === null && isInvalidDate((this as Readonly<Record<string, unknown>>)[key])) ||
    (typeof value === 'object' && value !== null && isOpaque(value))
  if (isLost) throw notJson(nameOf(value))
  return value
}

function nameOf(value: unknown): string {
  if (value === null) return 'an invalid Date'
  return typeof value === 'object'
    ? `an instance of ${value.constructor?.name ?? 'an unnamed class'}`
    : String(value)
}

/** JSON has null for a date without a time. */
function isInvalidDate(given: unknown): boolean {
  return Number.isNaN((given as Partial<Date> | null)?.getTime?.())
}

/** Whether JSON would lose the content of an object, such as a `Map`, or write bytes as numbered members. */
function isOpaque(value: object): boolean {
  if (Array.isArray(value)) return false
  if (ArrayBuffer.isView(value)) return true
  const prototype = Object.getPrototypeOf(value)
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null
  return !isPlain && Object.keys(value).length === 0
}

function notJson(what: string): HeadwaterError {
  return invalid(`a JSON value must not contain ${what.slice(0, 80)}`, 'value')
}

/** A record whose body is a JSON value. */
export interface JsonRecord<Value> {
  /** The position in the stream, from 0. */
  readonly seqNum: number
  /** Milliseconds since the Unix epoch unless the writer uses another unit. */
  readonly timestamp: number
  /** The headers in the order in which they were appended. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  /** The value, as the schema returns it. */
  readonly value: Value
}

function parsedBody(body: Uint8Array, seqNum: number): unknown {
  const text = textOf(body)
  if (text === undefined) throw undecodable(seqNum, 'is not UTF-8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw undecodable(seqNum, 'is not JSON', cause)
  }
}

function undecodable(seqNum: number, problem: string, cause?: unknown): HeadwaterError {
  return new HeadwaterError('undecodable_record', `record ${seqNum} ${problem}`, { seqNum, cause })
}

/** Passes encoded values on in the order of the calls, although schemas may validate asynchronously. */
export class OrderedEncoder {
  readonly #queue = new SerialQueue()
  #waiting = 0

  /**
   * Calls `send` with what was encoded: synchronously if nothing waits. Does not wait for what it returns.
   * Rejects with the reason of a signal that aborts before, and sends nothing then.
   */
  async run<Encoded, Sent>(
    encoded: MaybePromise<Encoded>,
    send: (encoded: Encoded) => Promise<Sent>,
    signal?: AbortSignal,
  ): Promise<Sent> {
    if (!isPromise(encoded) && this.#waiting === 0) return send(encoded)
    const encoding = Promise.resolve(encoded)
    // Its rejection is handled when its turn comes.
    encoding.catch(() => {})
    if (signal !== undefined) assertSignal(signal, 'signal')
    this.#waiting++
    let sent: Promise<Sent> | undefined
    await this.#queue.run(async () => {
      try {
        sent = send(await unlessAborted(signal, encoding))
        sent.catch(() => {})
      } finally {
        this.#waiting--
      }
    })
    return sent!
  }

  /** Resolves when everything that was encoded so far has been passed on, unless the signal aborts first. */
  idle(options?: CallOptions): Promise<void> {
    return unlessAborted(
      signalOf(options),
      this.#queue.run(async () => {}),
    )
  }
}

export type Encode<Input> = (value: Input) => MaybePromise<string>
