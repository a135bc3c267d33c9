import type fc from 'fast-check'
import { utf8 } from '../../../../src/model/bytes.ts'
import { equal } from '../harness/assertions.ts'
import { headwaterError } from '../harness/refusals.ts'
import { type AnyTarget, target } from '../harness/target.ts'

/** A decoder of a JSON body. Encoding a decoded value and decoding it again must return the same value. */
export function jsonBody<Value>({
  name,
  models,
  form,
  decode,
  words,
}: {
  readonly name: string
  readonly models: fc.Arbitrary<Value>
  /** The JSON of the value. */
  readonly form: (value: Value) => unknown
  readonly decode: (body: Uint8Array) => Value
  readonly words: readonly string[]
}): AnyTarget {
  return target({
    name,
    models,
    encode: (value) => JSON.stringify(form(value)),
    decode: (input: string) => decode(utf8(input)),
    means: (value) => value,
    refuses: headwaterError('bad_json', 'invalid'),
    verify: (value) =>
      equal(decode(utf8(JSON.stringify(form(value)))), value, 'the value, written and read again'),
    words,
    share: 12,
  })
}
