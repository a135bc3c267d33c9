import { afterEach, describe, expect, it, vi } from 'vitest'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import type { Codec } from '../../src/wire/codecs.ts'
import { streamGzip } from '../../src/wire/codecs.ts'
import { contentCodingOf, platformCodec, responseCodingOf } from '../../src/wire/compression.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/zstd.ts'
import { HOSTILE_ZSTD, rawBlock, rleBlock, skippableFrame, zstdFrame } from './zstd-data.ts'

const data = new Uint8Array(5000).map((_, index) => index >> 4)
const limits = { bytesMax: 5000, code: 'bad_frame' } as const

afterEach(() => {
  vi.restoreAllMocks()
  vi.resetModules()
})

/**
 * Loads the module as in a runtime of its own, because it caches codecs. Only a browser lacks `node:zlib`.
 */
async function inRuntime(runtime: 'node' | 'browser') {
  vi.resetModules()
  if (runtime === 'browser') vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined)
  return import('../../src/wire/compression.ts')
}

describe.each(['zstd', 'gzip'] as const)('%s', (algorithm) => {
  it.each(['node', 'browser'] as const)(
    'works in %s, also with data of the other runtime, and returns plain arrays, whose slices are copies',
    async (runtime) => {
      const elsewhere = await inRuntime(runtime === 'node' ? 'browser' : 'node')
      const foreign = await elsewhere.compress(algorithm, data)
      vi.restoreAllMocks()
      const { compress, decompress } = await inRuntime(runtime)
      const compressed = await compress(algorithm, data)
      expect(compressed.length).toBeLessThan(1000)
      const decompressed = await decompress(algorithm, compressed, limits)
      expect(decompressed).toEqual(data)
      expect(await decompress(algorithm, foreign, limits)).toEqual(data)
      expect([compressed.constructor.name, decompressed.constructor.name]).toEqual([
        'Uint8Array',
        'Uint8Array',
      ])
    },
  )

  it('rejects with the given code and a reason', async () => {
    const { compress, decompress } = await inRuntime('node')
    const compressed = await compress(algorithm, data)
    await expect(
      decompress(algorithm, compressed, { bytesMax: 4999, code: 'bad_json' }),
    ).rejects.toMatchObject({
      code: 'bad_json',
      message: `${algorithm} data decompresses to more than 4999 bytes`,
    })
    await expect(decompress(algorithm, data, { bytesMax: 4999, code: 'bad_proto' })).rejects.toMatchObject({
      code: 'bad_proto',
      message: expect.stringMatching(new RegExp(`^${algorithm} data is malformed: .`)),
    })
  })
})

describe('contentCodingOf', () => {
  it.each([
    [null, 'identity'],
    ['', 'identity'],
    ['identity', 'identity'],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    [' GZIP ', 'gzip'],
    ['Zstd', 'zstd'],
    ['br', undefined],
    ['gzip, zstd', undefined],
    ['unknown', undefined],
  ])('%j is %s', (header, expected) => {
    expect(contentCodingOf(header)).toBe(expected)
  })
})

describe('responseCodingOf', () => {
  it.each([
    [null, undefined],
    ['', undefined],
    ['identity', undefined],
    ['*', undefined],
    ['br', undefined],
    ['gzip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['GZIP, Zstd', 'zstd'],
    ['zstd, gzip', 'zstd'],
    ['gzip, zstd;q=0.5', 'gzip'],
    ['gzip;q=0.5, zstd;q=0.6', 'zstd'],
    ['zstd;q=0, gzip; q=0.1', 'gzip'],
    ['gzip;q=0', undefined],
    ['gzip;q=x', undefined],
    ['gzip, deflate, br', 'gzip'],
  ])('%j is %s', (header, expected) => {
    expect(responseCodingOf(header)).toBe(expected)
  })
})

const LIMIT = 100_000
const WINDOW_1_MIB = 10 << 3
const BLOCK = 131_072

const nativeZstd = platformCodec('zstd')
const zstd: [string, Codec][] = [
  ['portable zstd', portableZstd()],
  // Earlier versions of Node have none.
  ...(nativeZstd === undefined ? [] : [['native zstd', nativeZstd] as [string, Codec]]),
]
const gzip: [string, Codec][] = [
  ['native gzip', platformCodec('gzip')!],
  ['gzip of streams', streamGzip],
]

/** Compressible, but with matches over long distances. */
function sample(length: number): Uint8Array {
  const bytes = new Uint8Array(length)
  let seed = 1
  for (let i = 0; i < length; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    bytes[i] = i > 50_000 && i % 3 ? bytes[i - 50_000]! : seed >>> 28
  }
  return bytes
}

function compressAll(codec: Codec, parts: readonly Uint8Array[]): Promise<Uint8Array> {
  return Promise.all(parts.map((part) => codec.compress(part))).then(concatBytes)
}

describe.each([...gzip, ...zstd])('%s', (name, codec) => {
  const rejects = (data: Uint8Array, reason: string, limit = LIMIT) =>
    expect(codec.decompress(data, limit)).rejects.toMatchObject({ name: 'CompressedDataError', reason })

  it.each([0, 1, 255, 256, 65_791, 65_792, LIMIT])(
    'round-trips %i bytes as a plain array',
    async (length) => {
      const data = sample(length)
      const compressed = await codec.compress(data)
      const decompressed = await codec.decompress(compressed, LIMIT)
      expect(Buffer.compare(decompressed, data)).toBe(0)
      expect([compressed.constructor, decompressed.constructor]).toEqual([Uint8Array, Uint8Array])
    },
  )

  it('accepts output up to the limit and not a byte more', async () => {
    const compressed = await codec.compress(sample(LIMIT))
    expect(await codec.decompress(compressed, LIMIT)).toHaveLength(LIMIT)
    await rejects(compressed, 'too-large', LIMIT - 1)
  })

  // `DecompressionStream` takes one part, as its standard says.
  if (name !== 'gzip of streams') {
    it('decompresses several parts, and counts them against one limit', async () => {
      const parts = await compressAll(codec, ['one ', '', 'two', ''].map(utf8))
      expect(await codec.decompress(parts, 7)).toEqual(utf8('one two'))
      await rejects(parts, 'too-large', 6)
    })
  }

  it('rejects kilobytes that decompress to megabytes', async () => {
    const bomb = await codec.compress(new Uint8Array(1024 * 1024))
    expect(bomb.length).toBeLessThan(5_000)
    await rejects(bomb, 'too-large')
  })

  it.each([
    ['nothing', new Uint8Array(0)],
    ['another format', utf8('something else')],
  ])('rejects %s', (_, data) => rejects(data, 'malformed'))

  it('rejects truncated data and trailing bytes', async () => {
    const compressed = await codec.compress(utf8('some text, some more text, and some more'))
    for (let length = 0; length < compressed.length; length++) {
      await rejects(compressed.subarray(0, length), 'malformed')
    }
    // The streams of Node, which it does not use, ignore trailing bytes; those of browsers reject them.
    if (codec === streamGzip) return
    for (const more of [[0], [0, 0, 0, 0], [31], [31, 139, 8, 0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]) {
      await rejects(concatBytes([compressed, Uint8Array.from(more)]), 'malformed')
    }
  })
})

describe.each(gzip)('%s', (_, codec) => {
  it.each(gzip)('decompresses output of %s', async (_other, other) => {
    const data = sample(70_000)
    expect(await codec.decompress(await other.compress(data), LIMIT)).toEqual(data)
  })

  it('accepts every optional field of a header', async () => {
    const compressed = await codec.compress(utf8('content'))
    const flags = 0x04 | 0x08 | 0x10
    const header = [31, 139, 8, flags, 0, 0, 0, 0, 0, 255, 2, 0, 7, 7, ...utf8('name\0comment\0')]
    const data = Uint8Array.from([...header, ...compressed.subarray(10)])
    expect(await codec.decompress(data, LIMIT)).toEqual(utf8('content'))
  })

  it.each([
    ['checksum', 5],
    ['length', 1],
  ])('rejects a wrong %s, also before the last member', async (_part, fromEnd) => {
    const damaged = await codec.compress(utf8('some text'))
    damaged[damaged.length - fromEnd]! ^= 1
    for (const data of [damaged, concatBytes([damaged, await codec.compress(utf8('more'))])]) {
      await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
    }
  })
})

describe.each(zstd)('%s', (_, codec) => {
  it.each(HOSTILE_ZSTD)('rejects %s', async (_case, data, reason) => {
    await expect(codec.decompress(data, 2_097_151)).rejects.toMatchObject({
      name: 'CompressedDataError',
      reason,
    })
  })

  it.each([
    ['that does not say so', {}],
    ['that declares it', { contentSize: 4_194_304n }],
    ['that declares more than there is memory', { contentSize: 2n ** 64n - 1n }],
    ['that declares little', { contentSize: 10n }],
  ])('rejects a hundred bytes that decompress to 4 MiB, %s', async (_case, parts) => {
    const blocks = Array.from({ length: 32 }, (_block, index) => rleBlock(0, BLOCK, index === 31))
    const bomb = zstdFrame({ window: WINDOW_1_MIB, ...parts, blocks })
    await expect(codec.decompress(bomb, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it.each([
    ['a reserved bit', zstdFrame({ window: 0, reservedBit: true, blocks: [rawBlock(sample(9), true)] })],
    ['a block larger than its window', zstdFrame({ window: 0, blocks: [rleBlock(1, 1025, true)] })],
    ['no last block', zstdFrame({ window: 0, blocks: [rawBlock(sample(9), false)] })],
    ['less than it declares', zstdFrame({ contentSize: 10n, blocks: [rawBlock(sample(9), true)] })],
    ['more than it declares', zstdFrame({ contentSize: 8n, blocks: [rawBlock(sample(9), true)] })],
    ['a skippable frame cut short', skippableFrame(sample(9)).subarray(0, 12)],
  ])('rejects %s', async (_case, data) => {
    await expect(codec.decompress(data, LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
  })

  it('skips skippable frames, and decompresses frames of several blocks', async () => {
    const blocks = [
      rawBlock(Uint8Array.of(1, 2), false),
      rleBlock(3, 2, false),
      rawBlock(new Uint8Array(0), true),
    ]
    const data = concatBytes([
      skippableFrame(Uint8Array.of(9, 9)),
      zstdFrame({ window: WINDOW_1_MIB, blocks }),
      skippableFrame(new Uint8Array(0)),
    ])
    expect(await codec.decompress(data, LIMIT)).toEqual(Uint8Array.of(1, 2, 3, 3))
  })

  it.each([
    ['128 MiB', 17 << 3],
    ['3.75 TiB', 0xff],
  ])('accepts a frame with a window of %s without allocating it', async (_size, window) => {
    const data = zstdFrame({ window, blocks: [rawBlock(sample(9), true)] })
    expect(await codec.decompress(data, LIMIT)).toEqual(sample(9))
  })
})

it('portable zstd is loaded again after loading failed', async () => {
  let attempts = 0
  const codec = portableZstd(async () => {
    if (++attempts === 1) throw new Error('offline')
    return loadZstdBinding()
  })
  await expect(codec.compress(sample(10))).rejects.toThrow('offline')
  expect((await codec.compress(sample(10))).length).toBeGreaterThan(10)
})
