import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { concatBytes } from '../../src/model/bytes.ts'
import type { Compression } from '../../src/wire/codec.ts'
import { compress } from '../../src/wire/compression.ts'
import { FrameDecoder, type MessageFrame } from '../../src/wire/frame.ts'
import { frameMessage, messageOf, sessionCompressionOf } from '../../src/wire/session-frames.ts'
import { rleBlock, zstdFrame } from './zstd-data.ts'

describe('sessionCompressionOf', () => {
  it.each([
    [undefined, undefined],
    ['', undefined],
    ['identity', undefined],
    ['*', undefined],
    ['br, deflate', undefined],
    ['zstdx, xgzip', undefined],
    ['gzip', 'gzip'],
    ['zstd', 'zstd'],
    ['ZSTD', 'zstd'],
    ['gzip, zstd', 'zstd'],
    ['gzip,zstd;q=0.1', 'zstd'],
    ['gzip, zstd;q=0', 'zstd'],
    ['br , GZip ; q=0', 'gzip'],
  ])('%j is %s', (header, expected) => {
    expect(sessionCompressionOf(header)).toBe(expected)
  })

  it('of a page is never zstd', () => {
    expect(sessionCompressionOf('gzip, deflate, br, zstd', true)).toBe('gzip')
    expect(sessionCompressionOf('zstd', true)).toBeUndefined()
  })
})

function frameOf(encoded: Uint8Array): MessageFrame {
  const [frame] = [...new FrameDecoder().decode(encoded)]
  return frame as MessageFrame
}

const compressions: (Compression | undefined)[] = ['zstd', 'gzip', undefined]

describe('frameMessage', () => {
  it.each(
    compressions.flatMap((compression) =>
      [0, 1023, 1024, 5000].map((length) => ({
        compression,
        length,
        expected: length < 1024 ? undefined : compression,
      })),
    ),
  )('with $compression, $length bytes are sent with $expected', async ({ compression, length, expected }) => {
    const message = new Uint8Array(length).map((_, index) => Math.imul(index, 2_654_435_761) >>> 24)
    const frame = frameOf(await frameMessage(message, compression))
    expect(frame.compression).toBe(expected)
    expect(await messageOf(frame)).toEqual(message)
  })

  it('compresses from 1,024 bytes, even if the result is longer', async () => {
    const message = crypto.getRandomValues(new Uint8Array(1024))
    const frame = frameOf(await frameMessage(message, 'gzip'))
    expect(frame.compression).toBe('gzip')
    expect(frame.payload.length).toBeGreaterThan(1024)
  })
})

describe('messageOf', () => {
  const plain = { kind: 'message', compression: undefined, reconnectAdvised: false } as const
  const refusal = { code: 'bad_frame', status: 400 }

  it('returns the payload itself if it is not compressed', async () => {
    const payload = Uint8Array.of(1)
    expect(await messageOf({ ...plain, payload })).toBe(payload)
  })

  it.each(['zstd', 'gzip'] as const)(
    'accepts a %s message of 2,097,151 bytes and no more',
    async (compression) => {
      const payload = await compress(compression, new Uint8Array(2_097_151))
      expect(await messageOf({ ...plain, compression, payload })).toHaveLength(2_097_151)
      const larger = await compress(compression, new Uint8Array(2_097_152))
      await expect(messageOf({ ...plain, compression, payload: larger })).rejects.toMatchObject(refusal)
    },
  )

  it.each(['zstd', 'gzip'] as const)('rejects data that is not %s', async (compression) => {
    for (const payload of [new Uint8Array(0), new Uint8Array(50).fill(7)]) {
      await expect(messageOf({ ...plain, compression, payload })).rejects.toMatchObject(refusal)
    }
  })

  it('rejects decompression bombs', { tags: ['slow'] }, async () => {
    const blocks = Array.from({ length: 512 }, (_, index) => rleBlock(0, 131_072, index === 511))
    const zstd = zstdFrame({ window: 17 << 3, blocks })
    await expect(messageOf({ ...plain, compression: 'zstd', payload: zstd })).rejects.toMatchObject(refusal)
    const gzip = new Uint8Array(concatBytes([gzipSync(new Uint8Array(67_108_864))]))
    await expect(messageOf({ ...plain, compression: 'gzip', payload: gzip })).rejects.toMatchObject(refusal)
  })
})
