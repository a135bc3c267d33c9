import fc from 'fast-check'
import * as fflate from 'fflate'
import { describe, expect, it } from 'vitest'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import { nodeGzip, nodeZlib } from '../../src/wire/codec-node.ts'
import { crc32, portableGzip } from '../../src/wire/codecs.ts'

const LIMIT = 2_097_151
const ZEROS_64_MIB = 64 * 1024 * 1024

const node = nodeGzip(nodeZlib()!)
const portable = portableGzip(fflate)
const codecs = [
  ['native', node],
  ['portable', portable],
] as const

describe.each(codecs)('gzip, %s', (_name, codec) => {
  it('round-trips its input', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (data) => {
        expect(await codec.decompress(await codec.compress(data), LIMIT)).toEqual(data)
      }),
    )
  })

  it.each(codecs)('decompresses output of %s', async (_other, other) => {
    const data = new Uint8Array(200_000).map((_, index) => (index * index) >> 7)
    expect(await codec.decompress(await other.compress(data), LIMIT)).toEqual(data)
  })

  it('accepts output up to the limit and not a byte more', async () => {
    const compressed = await codec.compress(new Uint8Array(LIMIT))
    expect(await codec.decompress(compressed, LIMIT)).toHaveLength(LIMIT)
    await expect(codec.decompress(compressed, LIMIT - 1)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it('rejects members that exceed the limit together', async () => {
    const half = await codec.compress(new Uint8Array(1_048_576))
    await expect(codec.decompress(concatBytes([half, half]), LIMIT)).rejects.toMatchObject({
      reason: 'too-large',
    })
  })

  it('rejects 64 KiB that decompress to 64 MiB', async () => {
    const bomb = await codec.compress(new Uint8Array(ZEROS_64_MIB))
    expect(bomb.length).toBeLessThan(70_000)
    await expect(codec.decompress(bomb, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
  })

  it('decompresses several members', async () => {
    const members = await Promise.all(['one ', '', 'two', ''].map((text) => codec.compress(utf8(text))))
    expect(await codec.decompress(concatBytes(members), LIMIT)).toEqual(utf8('one two'))
  })

  it('accepts every optional field of a header', async () => {
    const compressed = await codec.compress(utf8('content'))
    const flags = 0x04 | 0x08 | 0x10
    const header = [31, 139, 8, flags, 0, 0, 0, 0, 0, 255, 2, 0, 7, 7, ...utf8('name\0comment\0')]
    expect(await codec.decompress(Uint8Array.from([...header, ...compressed.subarray(10)]), LIMIT)).toEqual(
      utf8('content'),
    )
  })

  it('rejects empty input and other formats', async () => {
    const malformed = { name: 'CompressedDataError', reason: 'malformed' }
    await expect(codec.decompress(new Uint8Array(0), LIMIT)).rejects.toMatchObject(malformed)
    await expect(codec.decompress(utf8('something else'), LIMIT)).rejects.toMatchObject(malformed)
  })

  it('rejects truncated data and trailing bytes', async () => {
    const compressed = await codec.compress(utf8('some text, some more text, and some more'))
    for (let length = 0; length < compressed.length; length++) {
      await expect(codec.decompress(compressed.subarray(0, length), LIMIT)).rejects.toMatchObject({
        reason: 'malformed',
      })
    }
    for (const more of [[0], [0, 0, 0, 0], [31], [31, 139, 8, 0], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]) {
      const longer = concatBytes([compressed, Uint8Array.from(more)])
      await expect(codec.decompress(longer, LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
    }
  })

  it.each(['checksum', 'length'])('rejects a wrong %s', async (part) => {
    const compressed = await codec.compress(utf8('some text'))
    compressed[compressed.length - (part === 'length' ? 1 : 5)]! ^= 1
    await expect(codec.decompress(compressed, LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
  })

  it('rejects a wrong checksum of a member before the last', async () => {
    const members = await Promise.all(['one', 'two'].map((text) => codec.compress(utf8(text))))
    members[0]![members[0]!.length - 5]! ^= 1
    await expect(codec.decompress(concatBytes(members), LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
  })

  it('rejects damaged data or returns the original', async () => {
    const data = utf8('some text, some more text, and some more '.repeat(20))
    const compressed = await codec.compress(data)
    await fc.assert(
      fc.asyncProperty(
        fc.nat(compressed.length - 1),
        fc.integer({ min: 1, max: 255 }),
        async (offset, change) => {
          const damaged = compressed.slice()
          damaged[offset]! ^= change
          const outcome = await codec.decompress(damaged, LIMIT).catch((error: Error) => error.name)
          if (typeof outcome === 'string') expect(outcome).toBe('CompressedDataError')
          else expect(outcome).toEqual(data)
        },
      ),
    )
  })
})

describe('gzip, portable', () => {
  it('stops soon after the limit', async () => {
    let produced = 0
    class CountingGunzip extends fflate.Gunzip {
      constructor(consumer: fflate.FlateStreamHandler) {
        super((part, final) => {
          produced += part.length
          consumer(part, final)
        })
      }
    }
    const counting = portableGzip({
      gzipSync: fflate.gzipSync,
      Gunzip: CountingGunzip as typeof fflate.Gunzip,
    })
    const bomb = await portable.compress(new Uint8Array(ZEROS_64_MIB))
    await expect(counting.decompress(bomb, LIMIT)).rejects.toMatchObject({ reason: 'too-large' })
    expect(produced).toBeGreaterThan(LIMIT)
    expect(produced).toBeLessThan(2 * LIMIT)
  })

  it('rejects endless empty members, which consume memory', async () => {
    const empty = await portable.compress(new Uint8Array(0))
    const members = (count: number) => concatBytes(Array.from({ length: count }, () => empty))
    expect(await portable.decompress(members(256), LIMIT)).toHaveLength(0)
    await expect(portable.decompress(members(257), LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
    await expect(portable.decompress(members(100_000), LIMIT)).rejects.toMatchObject({ reason: 'malformed' })
  })
})

describe('crc32', () => {
  it('has the check value of the CRC-32 standard', () => {
    expect(crc32(utf8('123456789'))).toBe(0xcbf4_3926)
  })

  it('continues from an earlier checksum', () => {
    expect(crc32(utf8('6789'), crc32(utf8('12345')))).toBe(0xcbf4_3926)
  })
})
