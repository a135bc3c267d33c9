import fc from 'fast-check'
import { concatBytes } from '../../../src/model/bytes.ts'
import type { Codec } from '../../../src/wire/codec.ts'
import { equal, type Outcome, ok, settledOutcomeOf } from './harness/assertions.ts'
import { compressedDataError, nothing } from './harness/refusals.ts'
import { type AnyTarget, type MemoryBound, target } from './harness/target.ts'
import { bytes } from './models.ts'

/** Small, so that mutations exceed it. */
export const OUTPUT_BYTES_MAX = 20_000

const data = fc.oneof(
  bytes,
  fc.nat(OUTPUT_BYTES_MAX).map((length) => new Uint8Array(length)),
  fc
    .array(fc.constantFrom('one ', 'two ', 'three '), { maxLength: 100 })
    .map((words) => Buffer.from(words.join(''))),
)

/** The content of compressed data, in several members or frames. */
export const parts = fc
  .array(data, { minLength: 1, maxLength: 3 })
  .filter((all) => all.reduce((sum, { length }) => sum + length, 0) <= OUTPUT_BYTES_MAX)

export type CompressPart = (part: Uint8Array, index: number) => Uint8Array | Promise<Uint8Array>

export async function compressed(
  all: readonly Uint8Array[],
  compressPart: CompressPart,
): Promise<Uint8Array> {
  return concatBytes(await Promise.all(all.map(compressPart)))
}

/** The codecs of a format. All of them must decode what the first one decodes. */
export function codecTarget({
  name,
  codecs,
  compressPart,
  checkAlone,
  words,
  memory,
}: {
  readonly name: string
  /** The strictest first. */
  readonly codecs: readonly Codec[]
  readonly compressPart: CompressPart
  /** Checks the output of the other codecs for input that the first one rejects. */
  readonly checkAlone: (value: Uint8Array, input: Uint8Array) => void
  readonly words: readonly Uint8Array[]
  readonly memory: MemoryBound
}): AnyTarget {
  return target({
    name,
    models: parts,
    encode: (all) => compressed(all, compressPart),
    decode: (input: Uint8Array) =>
      Promise.all(codecs.map((codec) => settledOutcomeOf(() => codec.decompress(input, OUTPUT_BYTES_MAX)))),
    means: (all) => codecs.map(() => ({ value: concatBytes(all) })),
    refuses: nothing,
    async verify(outcomes, input) {
      for (const [i, outcome] of outcomes.entries()) await checkOutcome(codecs[i]!, outcome, input)
      const [strictest] = outcomes
      for (const outcome of outcomes) {
        if ('value' in strictest!) equal(outcome, strictest, 'what another codec makes of it')
        else if ('value' in outcome) checkAlone(outcome.value, input)
      }
    },
    words,
    memory,
    share: 3,
  })
}

async function checkOutcome(codec: Codec, outcome: Outcome<Uint8Array>, input: Uint8Array): Promise<void> {
  if ('error' in outcome) {
    if (!compressedDataError(outcome.error)) throw outcome.error
    return
  }
  const { length } = outcome.value
  ok(length <= OUTPUT_BYTES_MAX, 'it makes more than it may')
  if (length === 0) return
  const less = await settledOutcomeOf(() => codec.decompress(input, length - 1))
  ok('error' in less && compressedDataError(less.error), 'it makes a byte more than it may')
}
