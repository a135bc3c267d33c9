import { expect } from 'vitest'
import { TransferError } from '../../../adapters/transfer/service.ts'
import { type AppendInput, appendBatch } from '../../../src/model/append-input.ts'
import { type ErrorCode, HeadwaterError } from '../../../src/model/errors.ts'
import { CompressedDataError } from '../../../src/wire/codecs.ts'
import { Malformed } from '../../../src/wire/json.ts'

/** The outcome of a call. Of two decoders that are compared, both may reject an input. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown }

export function outcomeOf<Value>(call: () => Value): Outcome<Value> {
  try {
    return { value: call() }
  } catch (error) {
    return { error }
  }
}

export async function settledOutcomeOf<Value>(call: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await call() }
  } catch (error) {
    return { error }
  }
}

/** Whether a decoder is documented to throw this error. */
export type Rejects = (error: unknown) => boolean

export const never: Rejects = () => false

export function withCode(...codes: readonly ErrorCode[]): Rejects {
  return (error) => HeadwaterError.is(error) && codes.includes(error.code)
}

/**
 * A `RangeError` of this project. Those of the platform (invalid length or offset, stack exhausted) indicate
 * a defect.
 */
export const rangeError: Rejects = (error) =>
  error instanceof RangeError && !('code' in error) && !OF_PLATFORM.test(error.message)

/** Messages of the platform begin with a capital letter, except for one. */
const OF_PLATFORM = /^([A-Z]|offset is out of bounds)/

export const compressedDataError: Rejects = (error) => error instanceof CompressedDataError
export const malformedResponse: Rejects = (error) => error instanceof Malformed
export const transferError: Rejects = (error) => error instanceof TransferError

/** The model accepts the decoded append or rejects it as `invalid`. */
export function checkBatch({ inputs, conditions }: AppendInput): void {
  const outcome = outcomeOf(() => appendBatch(inputs, conditions))
  if ('error' in outcome) expect(outcome.error).toSatisfy(withCode('invalid'))
}
