import type fc from 'fast-check'
import { utf8 } from '../../../src/model/bytes.ts'
import { equal } from '../harness/equal.ts'
import { headwaterError } from '../harness/refusals.ts'
import { type AnyTarget, target } from '../harness/target.ts'

/** A decoder of a JSON body: what it reads it reads again from what is written of it. */
export function jsonBody<Value>({
  name,
  models,
  form,
  decode,
  words,
}: {
  readonly name: string
  readonly models: fc.Arbitrary<Value>
  /** What stands for the value in JSON. */
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
