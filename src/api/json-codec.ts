import { HeadwaterError, invalid } from '../model/errors.ts'
import type { SequencedRecord } from '../model/record.ts'
import { andThen, type MaybePromise } from '../runtime/maybe-promise.ts'
import { decodeJsonRecords, type JsonRecord } from './json-decoder.ts'
import { issueText, type StandardResult, type StandardSchema } from './standard-schema.ts'

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
    return decodeJsonRecords(records, (value) => this.#validate(value))
  }

  #validate(value: unknown): MaybePromise<StandardResult<Value>> {
    return this.schema === undefined ? { value: value as Value } : this.schema['~standard'].validate(value)
  }
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
