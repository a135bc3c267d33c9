// @module-tag slow

import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { ZstdBinding } from 'zstd-codec/lib/module.js'
import type { Codec } from '../../src/wire/codec.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/codec-zstd.ts'

const DIST = resolve(import.meta.dirname, '../../dist')

/** The codec of the package, whose module lacks what headwater never calls. */
const packaged = portableZstd(async () => {
  const name = readdirSync(DIST).find((file) => /^zstd-module-.*\.js$/.test(file))!
  const { run } = (await import(join(DIST, name))).default
  return new Promise((resolve) => {
    run((module: ZstdBinding & { then?: unknown }) => {
      const { then: _then, ...binding } = module
      resolve(binding)
    })
  })
})
const complete = portableZstd(loadZstdBinding)

const WORDS = ['append', 'read', 'stream', 'basin', '{"seq_num":', '0', '1', '}\n', 'tail', ' ']

/** Numbers from 0 to 2^32 - 1 in an order that looks random. */
function* numbersFrom(seed: number): Generator<number, never> {
  let state = seed
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield state
  }
}

const INPUTS: readonly [string, (length: number) => Uint8Array][] = [
  ['text', text],
  ['noise', (length) => noise(length)],
  ['zeros', (length) => new Uint8Array(length)],
]

function text(length: number): Uint8Array {
  const numbers = numbersFrom(length)
  let written = ''
  while (written.length < length) written += WORDS[(numbers.next().value >>> 16) % WORDS.length]
  return new TextEncoder().encode(written.slice(0, length))
}

function noise(length: number): Uint8Array {
  const numbers = numbersFrom(length + 1)
  return Uint8Array.from({ length }, () => numbers.next().value >>> 24)
}

/** The lengths at which zstd changes its parameters, and those that are compressed in parts. */
const LENGTHS = [1, 100, 16_384, 16_385, 131_072, 131_073, 262_144, 262_145, 1_000_000, 2_097_153, 5_000_000]

describe('the zstd module of the package', () => {
  describe.each(INPUTS)('with %s', (_, inputOf) => {
    it.each(LENGTHS)('compresses %i bytes as the complete module does', async (length) => {
      const input = inputOf(length)
      const compressed = await packaged.compress(input)
      const expected = await complete.compress(input)
      expect(Buffer.compare(compressed, expected)).toBe(0)
      expect(Buffer.compare(await decompressed(packaged, compressed), input)).toBe(0)
    })
  })
})

const decompressed = (codec: Codec, data: Uint8Array) => codec.decompress(data, 8_000_000)
