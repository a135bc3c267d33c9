import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { beforeAll, expect } from 'vitest'
import { concatBytes, utf8 } from '../../../src/model/bytes.ts'
import type { Codec } from '../../../src/wire/codecs.ts'
import { platformCodec } from '../../../src/wire/compression.ts'
import { portableZstd } from '../../../src/wire/zstd.ts'
import { HOSTILE_ZSTD, rawBlock, rleBlock, skippableFrame, zstdFrame } from '../../wire/zstd-data.ts'
import { fuzzBytes } from './decoder.ts'
import { bytes } from './models.ts'
import { compressedDataError, type Outcome, settledOutcomeOf } from './outcomes.ts'

/** Small, so that damage exceeds it. */
const OUTPUT_BYTES_MAX = 20_000

const data = fc.oneof(
  bytes,
  fc.nat(OUTPUT_BYTES_MAX).map((length) => new Uint8Array(length)),
  fc
    .array(fc.constantFrom('one ', 'two ', 'three '), { maxLength: 100 })
    .map((words) => utf8(words.join(''))),
)

/** The content of compressed data, in several members or frames. */
const parts = fc
  .array(data, { minLength: 1, maxLength: 3 })
  .filter((all) => all.reduce((sum, { length }) => sum + length, 0) <= OUTPUT_BYTES_MAX)

interface Format {
  /** The strictest first. All of them must decode what the first one decodes. */
  readonly codecs: readonly Codec[]
  readonly compressPart: (part: Uint8Array) => Promise<Uint8Array>
  readonly memory: { readonly perInputByte: number; readonly beside: number }
  readonly words: readonly Uint8Array[]
  readonly found?: readonly (readonly [why: string, input: Uint8Array])[]
}

function fuzzCodecs(name: string, { codecs, compressPart, ...format }: Format): void {
  // What the first use of a codec allocates is no part of an input.
  beforeAll(async () => {
    for (const codec of codecs)
      await codec.decompress(await codec.compress(utf8('warm up')), OUTPUT_BYTES_MAX)
  })
  fuzzBytes(name, {
    ...format,
    isSlow: true,
    models: parts,
    encode: async (all) => concatBytes(await Promise.all(all.map((part) => compressPart(part)))),
    decode: (input) =>
      Promise.all(codecs.map((codec) => settledOutcomeOf(() => codec.decompress(input, OUTPUT_BYTES_MAX)))),
    means: (all) => codecs.map(() => ({ value: concatBytes(all) })),
    async verify(outcomes, input) {
      for (const [i, outcome] of outcomes.entries()) await checkOutcome(codecs[i]!, outcome, input)
      const [strictest, ...others] = outcomes
      for (const outcome of others) {
        if ('value' in strictest!) expect(outcome, 'what another codec makes of it').toEqual(strictest)
      }
    },
  })
}

async function checkOutcome(codec: Codec, outcome: Outcome<Uint8Array>, input: Uint8Array): Promise<void> {
  if ('error' in outcome) {
    expect(outcome.error).toSatisfy(compressedDataError)
    return
  }
  const { length } = outcome.value
  expect(length).toBeLessThanOrEqual(OUTPUT_BYTES_MAX)
  if (length === 0) return
  const less = await settledOutcomeOf(() => codec.decompress(input, length - 1))
  expect('error' in less && compressedDataError(less.error), 'a limit of one byte less rejects it').toBe(true)
}

const gzip = platformCodec('gzip')!

fuzzCodecs('gzip', {
  codecs: [gzip],
  compressPart: (part) => gzip.compress(part),
  memory: { perInputByte: 1200, beside: 300_000 },
  words: [
    Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3),
    Uint8Array.of(0x1f, 0x8b, 8, 0x1f),
    Uint8Array.of(3, 0),
    Uint8Array.of(0, 0, 0, 0xff, 0xff),
    // The largest permitted output, and the beginning of far too much.
    new Uint8Array(gzipSync(new Uint8Array(OUTPUT_BYTES_MAX))),
    new Uint8Array(gzipSync(new Uint8Array(8 * 1024 * 1024))).subarray(0, 4000),
  ],
})

const portable = portableZstd()
const native = platformCodec('zstd')

fuzzCodecs('zstd', {
  codecs: native === undefined ? [portable] : [native, portable],
  compressPart: (part) => portable.compress(part),
  memory: { perInputByte: 1200, beside: 300_000 },
  words: [
    zstdFrame({ contentSize: 64n * 1024n * 1024n, blocks: [rleBlock(1, 131_072, true)] }),
    zstdFrame({ window: 0xff, blocks: [rleBlock(1, 131_072, false)] }),
    zstdFrame({ window: 11 << 3, blocks: [rawBlock(Uint8Array.of(1, 2, 3), true)] }),
    rleBlock(0, 131_072, false),
    rleBlock(0, 2, true),
    rawBlock(Uint8Array.of(1, 2, 3), false),
    skippableFrame(Uint8Array.of(1)),
    skippableFrame(new Uint8Array(0)).fill(0xff, 4),
    Uint8Array.of(0x28, 0xb5, 0x2f, 0xfd),
    ...HOSTILE_ZSTD.map(([, bomb]) => bomb).filter(({ length }) => length <= 4096),
  ],
  found: [
    [
      'a frame that declares its size, behind one that does not, exceeded the limit for both together',
      fromHex(
        '28b52ffd60fe114d00001000000100f9d2032c28b52ffd00504d000010000001004dd4032c28b52ffd2006310000746872656520',
      ),
    ],
  ],
})

function fromHex(digits: string): Uint8Array {
  return new Uint8Array(Buffer.from(digits, 'hex'))
}
