import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { concatBytes } from '../../src/model/bytes.ts'
import { type Codec, CompressedDataError } from '../../src/wire/codec.ts'
import { nodeZlib, nodeZstd } from '../../src/wire/codec-node.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/codec-zstd.ts'
import { WINDOW_BYTES_MAX, zstdFrames } from '../../src/wire/zstd-frames.ts'
import { blockHeader, HOSTILE_ZSTD, rawBlock, rleBlock, skippableFrame, zstdFrame } from './zstd-data.ts'

const LIMIT = 2_097_151
const BLOCK = 131_072
const WINDOW_1_MIB = 10 << 3
const WINDOW_128_MIB = 17 << 3
const WINDOW_3_TIB = 0xff

let instances = 0
const portable = portableZstd(() => {
  instances++
  return loadZstdBinding()
})
const native = nodeZstd(nodeZlib()!)
const codecs: [string, Codec][] = [
  ['portable', portable],
  ...(native ? [['native', native] as [string, Codec]] : []),
]

/** Compressible, but with matches over long distances. */
function sample(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let seed = 1
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    bytes[i] = i > 1_000_000 && i % 3 ? bytes[i - 1_000_000]! : seed >>> 28
  }
  return bytes
}

function bomb(parts: { window?: number; contentSize?: bigint }): Uint8Array {
  const blocks = Array.from({ length: 512 }, (_, index) => rleBlock(0, BLOCK, index === 511))
  return zstdFrame({ window: WINDOW_1_MIB, ...parts, blocks })
}

describe.each(codecs)('zstd, %s', (_name, codec) => {
  it('round-trips its input', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (data) => {
        expect(await codec.decompress(await codec.compress(data), LIMIT)).toEqual(data)
      }),
    )
  })

  it.each([0, 1, 255, 256, 65_791, 65_792, LIMIT])('round-trips %i bytes', async (length) => {
    const data = sample(length)
    expect(equal(await codec.decompress(await codec.compress(data), LIMIT), data)).toBe(true)
  })

  it('rejects one byte more than the limit', async () => {
    const compressed = await codec.compress(sample(5001))
    expect(await codec.decompress(compressed, 5001)).toHaveLength(5001)
    await expect(codec.decompress(compressed, 5000)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it('rejects one byte more than the limit if the size is not declared', async () => {
    const frame = (length: number) => zstdFrame({ window: WINDOW_1_MIB, blocks: [rleBlock(7, length, true)] })
    expect(await codec.decompress(frame(5000), 5000)).toEqual(new Uint8Array(5000).fill(7))
    await expect(codec.decompress(frame(5001), 5000)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it.each([
    ['that does not say so', bomb({})],
    ['that declares it', bomb({ contentSize: 67_108_864n })],
    ['that declares more than there is memory', bomb({ contentSize: 2n ** 64n - 1n })],
    ['that declares little', bomb({ contentSize: 10n })],
    [
      'behind another frame',
      concatBytes([zstdFrame({ window: 0, blocks: [rawBlock(sample(9), true)] }), bomb({})]),
    ],
  ])('rejects 2 KiB that decompress to 64 MiB, %s', async (_case, data) => {
    expect(data.length).toBeLessThan(2200)
    await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it.each(HOSTILE_ZSTD)('rejects %s', async (_case, data, reason) => {
    await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({ name: 'CompressedDataError', reason })
  })

  it('rejects compressed blocks that exceed the limit', async () => {
    const data = await portable.compress(new Uint8Array(64 * 1024 * 1024))
    expect(data.length).toBeLessThan(20_000)
    expect(zstdFrames(data, LIMIT)[0]!.contentSize).toBeUndefined()
    await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it('rejects frames that exceed the limit together', async () => {
    const half = await codec.compress(sample(1_048_576))
    await expect(codec.decompress(concatBytes([half, half]), LIMIT)).rejects.toMatchObject({
      reason: 'too-large',
    })
    const header = zstdFrame({ window: WINDOW_128_MIB, blocks: [] })
    const compressed = concatBytes([header, (await portable.compress(sample(1_200_000))).subarray(10)])
    expect(await codec.decompress(compressed, LIMIT)).toHaveLength(1_200_000)
    const twice = concatBytes([compressed, compressed])
    await expect(codec.decompress(twice, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
    const undeclared = zstdFrame({ window: WINDOW_1_MIB, blocks: [rleBlock(1, BLOCK, true)] })
    const many = concatBytes(Array.from({ length: 17 }, () => undeclared))
    await expect(codec.decompress(many, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it.each([
    ['128 MiB', WINDOW_128_MIB],
    ['3.75 TiB', WINDOW_3_TIB],
  ])('accepts a frame with a window of %s', async (_size, window) => {
    const data = sample(LIMIT)
    const compressed = await portable.compress(data)
    const { bytes, contentSize } = zstdFrames(compressed, LIMIT)[0]!
    expect([bytes[4], contentSize]).toEqual([0x80, LIMIT])
    // The same blocks after a header that declares a window and no size.
    const header = zstdFrame({ window, blocks: [] })
    expect(equal(await codec.decompress(concatBytes([header, bytes.subarray(10)]), LIMIT), data)).toBe(true)
  })

  it('decompresses several frames and skips skippable ones', async () => {
    const [first, second] = [Uint8Array.of(1, 2, 3), sample(3000)]
    const data = concatBytes([
      skippableFrame(Uint8Array.of(9, 9)),
      await codec.compress(first),
      await codec.compress(new Uint8Array(0)),
      skippableFrame(new Uint8Array(0)),
      await codec.compress(second),
    ])
    expect(await codec.decompress(data, LIMIT)).toEqual(concatBytes([first, second]))
  })

  it('decompresses frames that were written in several parts', async () => {
    const blocks = [
      rawBlock(Uint8Array.of(1, 2), false),
      rleBlock(3, 2, false),
      rawBlock(new Uint8Array(0), true),
    ]
    const data = zstdFrame({ window: WINDOW_1_MIB, blocks })
    expect(await codec.decompress(data, LIMIT)).toEqual(Uint8Array.of(1, 2, 3, 3))
  })

  it.each([
    ['nothing', new Uint8Array(0)],
    ['something else', sample(100)],
    ['a reserved bit', zstdFrame({ window: 0, reservedBit: true, blocks: [rawBlock(sample(9), true)] })],
    ['a dictionary', zstdFrame({ window: 0, dictionaryId: 7, blocks: [rawBlock(sample(9), true)] })],
    [
      'an unknown type of block',
      zstdFrame({ window: 0, blocks: [Uint8Array.from(blockHeader(3, 0, true))] }),
    ],
    ['a block larger than its window', zstdFrame({ window: 0, blocks: [rleBlock(1, 1025, true)] })],
    ['no last block', zstdFrame({ window: 0, blocks: [rawBlock(sample(9), false)] })],
    [
      'a block of garbage',
      zstdFrame({ window: 0, blocks: [Uint8Array.from([...blockHeader(2, 5, true), 1, 2, 3, 4, 5])] }),
    ],
    ['less than it declares', zstdFrame({ contentSize: 10n, blocks: [rawBlock(sample(9), true)] })],
    ['more than it declares', zstdFrame({ contentSize: 8n, blocks: [rawBlock(sample(9), true)] })],
    ['a skippable frame cut short', skippableFrame(sample(9)).subarray(0, 12)],
    [
      'very many frames',
      concatBytes(
        Array.from({ length: 257 }, () =>
          zstdFrame({ window: 0, blocks: [rawBlock(new Uint8Array(0), true)] }),
        ),
      ),
    ],
  ])('rejects %s', async (_case, data) => {
    await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({
      name: 'CompressedDataError',
      reason: 'malformed',
    })
  })

  it('rejects truncated data and trailing bytes', async () => {
    const compressed = await codec.compress(sample(300))
    for (let length = 0; length < compressed.length; length++) {
      await expect(codec.decompress(compressed.subarray(0, length), LIMIT)).rejects.toMatchObject({
        reason: 'malformed',
      })
    }
    const longer = concatBytes([compressed, Uint8Array.of(0)])
    await expect(codec.decompress(longer, LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
  })

  it('rejects damaged data or returns some output, without any other effect', async () => {
    const compressed = await codec.compress(sample(2000))
    await fc.assert(
      fc.asyncProperty(
        fc.nat(compressed.length - 1),
        fc.integer({ min: 1, max: 255 }),
        async (offset, change) => {
          const damaged = compressed.slice()
          damaged[offset]! ^= change
          const outcome = await codec.decompress(damaged, LIMIT).catch((error: Error) => error.name)
          if (typeof outcome === 'string') expect(outcome).toBe('CompressedDataError')
          else expect(outcome.length).toBeLessThanOrEqual(LIMIT)
        },
      ),
    )
  })
})

describe('the wasm module', () => {
  it('has leaked no memory after the tests above', async () => {
    const data = sample(LIMIT)
    const compressed = await portable.compress(data)
    for (let i = 0; i < 50; i++) {
      await portable.compress(data)
      await portable.decompress(compressed, LIMIT)
      await portable.decompress(await portable.compress(data.subarray(0, 2000)), LIMIT)
    }
    expect(instances).toBe(1)
  })

  it('compresses data larger than its memory', async () => {
    const data = sample(12 * 1024 * 1024)
    const compressed = await portable.compress(data)
    // Beyond the intended size, but the window of the frame is small.
    expect(equal(await portable.decompress(compressed, data.length), data)).toBe(true)
    expect(instances).toBe(1)
  })

  it('is replaced after a failure', async () => {
    let loaded = 0
    const codec = portableZstd(async () => {
      loaded++
      const binding = await loadZstdBinding()
      if (loaded > 1) return binding
      const cloneToVector = () => {
        throw 'abort(OOM)'
      }
      return { ...binding, cloneToVector }
    })
    await expect(codec.compress(sample(10))).rejects.toBe('abort(OOM)')
    expect(await codec.decompress(await codec.compress(sample(10)), LIMIT)).toEqual(sample(10))
    expect(loaded).toBe(2)
  })

  it('is loaded again after loading failed', async () => {
    let loaded = 0
    const codec = portableZstd(async () => {
      if (++loaded === 1) throw new Error('offline')
      return loadZstdBinding()
    })
    await expect(codec.compress(sample(10))).rejects.toThrow('offline')
    expect((await codec.compress(sample(10))).length).toBeGreaterThan(10)
  })
})

describe('zstdFrames', () => {
  it('rejects truncated data', async () => {
    const blocks = [rleBlock(1, 9, false), rawBlock(sample(9), true)]
    const checked = await portable.compress(sample(300))
    checked[4]! |= 0x04
    const data = [
      zstdFrame({ window: 0, dictionaryId: 0, contentSize: 18n, blocks }),
      zstdFrame({ contentSize: 18n, blocks }),
      concatBytes([checked, new Uint8Array(4)]),
    ]
    for (const whole of data) {
      expect(zstdFrames(whole, LIMIT)).toHaveLength(1)
      for (let length = 0; length < whole.length; length++) {
        expect(() => zstdFrames(whole.subarray(0, length), LIMIT)).toThrow(CompressedDataError)
      }
    }
  })

  it('caps the window and changes nothing else', () => {
    const blocks = [rawBlock(Uint8Array.of(1, 2, 3), true)]
    const large = zstdFrame({ window: WINDOW_3_TIB, contentSize: 3n, blocks })
    const capped = zstdFrame({ window: 11 << 3, contentSize: 3n, blocks })
    expect(1 << (10 + 11)).toBe(WINDOW_BYTES_MAX)
    expect(zstdFrames(large, LIMIT)).toEqual([{ bytes: capped, contentSize: 3, cuts: [] }])
    expect(zstdFrames(capped, LIMIT)[0]!.bytes).toEqual(capped)
  })

  it('rejects endless empty blocks, which consume time', () => {
    const blocks = (count: number) => [
      ...Array.from({ length: count - 1 }, () => Uint8Array.from(blockHeader(0, 0, false))),
      rawBlock(new Uint8Array(0), true),
    ]
    expect(zstdFrames(zstdFrame({ window: 0, blocks: blocks(16_384) }), LIMIT)).toHaveLength(1)
    const tooMany = zstdFrame({ window: 0, blocks: blocks(16_385) })
    expect(() => zstdFrames(tooMany, LIMIT)).toThrow('too many zstd blocks')
    const half = zstdFrame({ window: 0, blocks: blocks(8192) })
    expect(zstdFrames(concatBytes([half, half]), LIMIT)).toHaveLength(2)
    expect(() => zstdFrames(concatBytes([half, half, half]), LIMIT)).toThrow('too many zstd blocks')
  })

  it('keeps only the end offsets of some blocks', () => {
    const empty = Uint8Array.from(blockHeader(0, 0, false))
    const blocks = Array.from({ length: 10_000 }, () => empty)
    const data = concatBytes([
      zstdFrame({ window: WINDOW_1_MIB, blocks: [] }),
      ...blocks,
      ...Array.from({ length: 128 }, () => Uint8Array.from([...blockHeader(2, 3, false), 0, 0, 0])),
      rawBlock(new Uint8Array(0), true),
    ])
    expect(zstdFrames(data, LIMIT)[0]!.cuts).toEqual([32, 64, 96, 128].map((count) => 6 + 30_000 + count * 6))
  })
})

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}
