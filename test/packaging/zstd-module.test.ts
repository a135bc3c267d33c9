// @module-tag slow

import { readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import type { ZstdBinding } from 'zstd-codec/lib/module.js'
import { loadZstdBinding, portableZstd } from '../../src/wire/zstd.ts'

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

/** A length at which zstd changes its parameters, and one that is compressed in parts. */
const LENGTHS = [16_385, 2_097_153]

it.each(INPUTS)(
  'the zstd module of the package compresses %s as the complete module does',
  async (_, inputOf) => {
    for (const input of LENGTHS.map(inputOf)) {
      const compressed = await packaged.compress(input)
      expect(Buffer.compare(compressed, await complete.compress(input))).toBe(0)
      expect(Buffer.compare(await packaged.decompress(compressed, 8_000_000), input)).toBe(0)
    }
  },
)
