import { describe, expect, it } from 'vitest'
import { concatBytes, utf8 } from '../../src/model/bytes.ts'
import type { Compression } from '../../src/wire/codecs.ts'
import { compress } from '../../src/wire/compression.ts'
import {
  encodeMessageFrame,
  encodeTerminalFrame,
  FRAME_PAYLOAD_MAX,
  type Frame,
  FrameDecoder,
  frameMessage,
  type MessageFrame,
  messageOf,
  sessionCompressionOf,
} from '../../src/wire/frame.ts'
import { rejection } from '../model/rejection.ts'

function decodeAll(...chunks: Uint8Array[]): Frame[] {
  const decoder = new FrameDecoder()
  const frames = chunks.flatMap((chunk) => [...decoder.decode(chunk)])
  decoder.end()
  return frames
}

const bytes = (...values: number[]) => Uint8Array.from(values)
const message = (payload: Uint8Array, rest: Partial<Frame> = {}) => ({
  kind: 'message',
  compression: undefined,
  reconnectAdvised: false,
  payload,
  ...rest,
})

describe('the layout of a frame', () => {
  it.each([
    ['an empty message', encodeMessageFrame(bytes()), [0, 0, 1, 0x00]],
    ['a message', encodeMessageFrame(bytes(7, 8)), [0, 0, 3, 0x00, 7, 8]],
    ['a zstd message', encodeMessageFrame(bytes(7), { compression: 'zstd' }), [0, 0, 2, 0x20, 7]],
    ['a gzip message', encodeMessageFrame(bytes(7), { compression: 'gzip' }), [0, 0, 2, 0x40, 7]],
    ['reconnect advised', encodeMessageFrame(bytes(7), { reconnectAdvised: true }), [0, 0, 2, 0x10, 7]],
    [
      'an error',
      encodeTerminalFrame(412, '{"seq_num_mismatch":7}'),
      [0, 0, 25, 0x80, 0x01, 0x9c, ...utf8('{"seq_num_mismatch":7}')],
    ],
    [
      'text beyond ASCII',
      encodeTerminalFrame(400, '"é"'),
      [0, 0, 7, 0x80, 0x01, 0x90, 0x22, 0xc3, 0xa9, 0x22],
    ],
  ])('encodes %s', (_case, frame, expected) => {
    expect([...frame]).toEqual(expected)
  })

  it.each([
    ['flag only', [0, 0, 1, 0x00], message(bytes())],
    ['zstd', [0, 0, 2, 0x20, 7], message(bytes(7), { compression: 'zstd' })],
    ['gzip', [0, 0, 2, 0x40, 7], message(bytes(7), { compression: 'gzip' })],
    ['reconnect advised', [0, 0, 2, 0x10, 7], message(bytes(7), { reconnectAdvised: true })],
    ['reserved bits, which are ignored', [0, 0, 2, 0x0f, 7], message(bytes(7))],
    ['an error', [0, 0, 5, 0x80, 0x01, 0xf7, 0x7b, 0x7d], { kind: 'terminal', status: 503, body: '{}' }],
    [
      'an error whose compression bits are ignored',
      [0, 0, 3, 0xff, 0x01, 0xf7],
      { kind: 'terminal', status: 503, body: '' },
    ],
  ])('decodes %s', (_case, frame, expected) => {
    expect(decodeAll(Uint8Array.from(frame))).toEqual([expected])
  })

  it.each([
    ['no flag byte', [0, 0, 0]],
    ['a length of 2 MiB and one', [0x20, 0, 1]],
    ['the largest length', [0xff, 0xff, 0xff]],
    ['unknown compression', [0, 0, 2, 0x60, 7]],
    ['an error without a status', [0, 0, 2, 0x80, 1]],
    ['an error whose text is not UTF-8', [0, 0, 4, 0x80, 1, 0x90, 0xff]],
    ['anything after an error', [0, 0, 3, 0x80, 1, 0x90, 0]],
  ])('rejects %s without waiting for more', (_case, data) => {
    const decoder = new FrameDecoder()
    expect(rejection(() => [...decoder.decode(Uint8Array.from(data))])).toMatchObject({
      code: 'bad_frame',
      status: 400,
    })
  })

  it.each([[[0]], [[0, 0]], [[0, 0, 2]], [[0, 0, 2, 0]], [[0, 0, 1, 0, 0]]])(
    'rejects an end after %j',
    (data) => {
      const decoder = new FrameDecoder()
      for (const _ of decoder.decode(Uint8Array.from(data)));
      expect(rejection(() => decoder.end())).toMatchObject({ code: 'bad_frame' })
    },
  )

  it('names an unknown compression', () => {
    expect(rejection(() => decodeAll(bytes(0, 0, 1, 0x60)))?.message).toBe('unknown compression')
  })

  it('accepts a payload of up to 2,097,151 bytes', () => {
    const payload = new Uint8Array(FRAME_PAYLOAD_MAX).fill(5)
    const frame = encodeMessageFrame(payload)
    expect([...frame.subarray(0, 4)]).toEqual([0x20, 0, 0, 0])
    expect(decodeAll(frame)[0]).toMatchObject({ payload: { length: FRAME_PAYLOAD_MAX } })
    expect(() => encodeMessageFrame(new Uint8Array(FRAME_PAYLOAD_MAX + 1))).toThrow(RangeError)
    expect(() => encodeTerminalFrame(500, 'x'.repeat(FRAME_PAYLOAD_MAX - 1))).toThrow(RangeError)
  })
})

describe('frames in chunks', () => {
  it('can arrive byte by byte, even at their largest', { tags: ['slow'] }, () => {
    const payload = new Uint8Array(FRAME_PAYLOAD_MAX).map((_, index) => index * 7)
    const data = concatBytes([encodeMessageFrame(payload), encodeMessageFrame(bytes(1))])
    const decoder = new FrameDecoder()
    const frames: Frame[] = []
    for (let i = 0; i < data.length; i++) frames.push(...decoder.decode(data.subarray(i, i + 1)))
    decoder.end()
    expect(frames).toHaveLength(2)
    const first = frames[0] as { payload: Uint8Array }
    expect(first.payload.every((byte, index) => byte === payload[index])).toBe(true)
    expect(frames[1]).toEqual(message(bytes(1)))
  })

  it('use no memory for announced bytes that have not arrived', () => {
    const decoder = new FrameDecoder()
    for (const _ of decoder.decode(bytes(0x20, 0, 0, 0, 1)));
    expect(decoder.heldBytes).toBeLessThanOrEqual(16_384)
  })

  it('are yielded before the error of a later frame', () => {
    const frames = new FrameDecoder().decode(concatBytes([encodeMessageFrame(bytes(1)), bytes(0, 0, 0)]))
    expect(frames.next().value).toEqual(message(bytes(1)))
    expect(rejection(() => frames.next())).toMatchObject({ code: 'bad_frame' })
  })

  it('share the memory of their chunk', () => {
    const chunk = encodeMessageFrame(bytes(1, 2, 3))
    const [frame] = decodeAll(chunk)
    expect((frame as { payload: Uint8Array }).payload.buffer).toBe(chunk.buffer)
  })

  it('do not share memory if they were joined from several chunks', () => {
    const first = encodeMessageFrame(bytes(1, 1, 1, 1))
    const second = encodeMessageFrame(bytes(2, 2, 2, 2))
    const frames = decodeAll(
      first.slice(0, 6),
      concatBytes([first.slice(6), second.slice(0, 6)]),
      second.slice(6),
    )
    expect(frames).toEqual([message(bytes(1, 1, 1, 1)), message(bytes(2, 2, 2, 2))])
  })
})

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
})
