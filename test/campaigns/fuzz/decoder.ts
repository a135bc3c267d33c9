import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { byteDamage, type Damage, textDamage } from './damage.ts'
import { allocatedDuring, heldBytes } from './memory.ts'
import { never, type Rejects } from './outcomes.ts'

/** A decoder and its promises. */
interface Decoder<In extends Uint8Array | string, Model, Value> {
  /** The models of valid inputs. */
  readonly models: fc.Arbitrary<Model>
  /** Encodes a valid input. */
  encode(model: Model): In | Promise<In>
  decode(input: In): Value | Promise<Value>
  /** The expected value of a valid input. If absent, the input only must not be rejected. */
  readonly means?: (model: Model) => unknown
  /** Whether the decoder is documented to throw this error. Default: it throws nothing. */
  readonly rejects?: Rejects
  /** Throws unless the decoder may return this value for the input. */
  verify?(value: Value, input: In): void | Promise<void>
  /** The bytes that the decoder may allocate, and that its value may hold. */
  readonly memory?: { readonly perInputByte: number; readonly beside: number }
  /** Fragments of the format, which damage inserts. */
  readonly words?: readonly In[]
  /** What the decoder does with its input, if it does more than decode it. */
  readonly title?: string
  /** Whether the test is tagged as slow. */
  readonly isSlow?: boolean
  /** Inputs on which the decoder once failed. */
  readonly found?: readonly (readonly [why: string, input: In])[]
}

const TITLE = 'decodes what was encoded, and rejects damaged input only as documented'
const MEMORY = { perInputByte: 128, beside: 4096 }
/** An error that repeats its input could fill a log. */
const MESSAGE_CHARACTERS_MAX = 2000

/** Defines the tests of a decoder of bytes. */
export function fuzzBytes<Model, Value>(name: string, decoder: Decoder<Uint8Array, Model, Value>): void {
  fuzz(name, decoder, byteDamage(decoder.words ?? []))
}

/** Defines the tests of a decoder of text. */
export function fuzzText<Model, Value>(name: string, decoder: Decoder<string, Model, Value>): void {
  fuzz(name, decoder, textDamage(decoder.words ?? []))
}

function fuzz<In extends Uint8Array | string, Model, Value>(
  name: string,
  decoder: Decoder<In, Model, Value>,
  anyDamage: fc.Arbitrary<Damage<In>>,
): void {
  const { models, found = [], title = TITLE, isSlow = false } = decoder
  describe(name, () => {
    it(title, { tags: isSlow ? ['slow'] : [] }, async () => {
      const property = fc.asyncProperty(models, anyDamage, async (model, damage) => {
        const input = await decoder.encode(model)
        await check(decoder, input, { model })
        await check(decoder, damage(input))
      })
      await fc.assert(property)
    })

    it.for(found)('once failed: %s', ([, input]) => check(decoder, input))
  })
}

/** Small copies share memory that is allocated at once: see `src/model/copies.ts`. */
const SHARED_BYTES = 16_384

/** Rejects unless the decoder keeps its promises. A valid input must decode to its model. */
async function check<In extends Uint8Array | string, Model, Value>(
  decoder: Decoder<In, Model, Value>,
  input: In,
  expected?: { readonly model: Model },
): Promise<void> {
  try {
    await checkDecoded(decoder, input, expected)
    expect(Object.keys(Object.prototype), 'members of every object').toEqual([])
  } catch (error) {
    const shown = typeof input === 'string' ? JSON.stringify(input) : Buffer.from(input).toString('hex')
    throw new Error(`${(error as Error).message}\nInput: ${shown}`, { cause: error })
  }
}

async function checkDecoded<In extends Uint8Array | string, Model, Value>(
  { decode, means, verify, rejects = never, memory = MEMORY }: Decoder<In, Model, Value>,
  input: In,
  expected: { readonly model: Model } | undefined,
): Promise<void> {
  const { outcome, bytes } = await allocatedDuring(() => decode(input))
  const bound = SHARED_BYTES + memory.beside + memory.perInputByte * input.length
  expect(bytes, 'allocated bytes').toBeLessThanOrEqual(bound)
  if ('error' in outcome) {
    const { error } = outcome
    if (expected !== undefined || !rejects(error)) throw error
    const { length } = (error as Error).message
    expect(length > 0 && length <= MESSAGE_CHARACTERS_MAX, `a message of ${length} characters`).toBe(true)
    return
  }
  expect(heldBytes(outcome.value), 'bytes of the value').toBeLessThanOrEqual(bound)
  if (expected !== undefined && means !== undefined) {
    expect(outcome.value).toEqual(means(expected.model))
  }
  await verify?.(outcome.value, input)
}
