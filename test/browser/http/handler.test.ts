// @module-tag slow

import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { type Frame, FrameDecoder } from '../../../src/wire/frame.ts'
import { AppendAckSchema, AppendInputSchema, ReadBatchSchema } from '../../../src/wire/gen/records_pb.ts'
import { frameMessage, messageOf } from '../../../src/wire/session-frames.ts'
import type { Variant } from '../bundle.ts'
import type * as Handler from '../pages/handler.ts'
import { inChromium, scriptIn } from '../support.ts'

/** Compresses well, spans several zstd blocks, and contains every byte value. */
const BODY = Uint8Array.from({ length: 300_000 }, (_, i) => (i % 997 < 256 ? i % 997 : (i >> 12) & 0xff))

/** The only input of a session, compressed outside the browser. */
async function inputFrame(compression: 'gzip' | 'zstd'): Promise<Uint8Array> {
  const input = create(AppendInputSchema, { records: [{ body: BODY }] })
  return frameMessage(toBinary(AppendInputSchema, input), compression)
}

function frameOf(bytes: Uint8Array): Frame & { kind: 'message' } {
  const [frame, ...more] = new FrameDecoder().decode(bytes)
  if (frame?.kind !== 'message') throw new Error(`not a message: ${JSON.stringify(frame)}`)
  expect(more).toEqual([])
  return frame
}

inChromium('the HTTP handler in a browser, without a server', (browser) => {
  describe.each<Variant>(['sources', 'package'])('from the %s', (variant) => {
    const load = async (path?: string) =>
      scriptIn<typeof Handler>(await browser.page(path), 'handler', variant)

    it('responds to calls', async () => {
      const { calls } = await load()
      const { answers, base64, errors } = await calls()
      const tail = { seq_num: 2, timestamp: 2 }
      expect(answers).toMatchObject([
        { status: 201, body: { name: 'another-basin', state: 'active' } },
        { status: 201, body: { name: 'a/b' } },
        { status: 200, body: { streams: [{ name: 'a/b' }, { name: 's' }], has_more: false } },
        { status: 200, body: { start: { seq_num: 0 }, end: { seq_num: 1 }, tail: { seq_num: 1 } } },
        { status: 200, body: { start: { seq_num: 1 }, end: { seq_num: 2 }, tail } },
        { status: 412, body: { seq_num_mismatch: 2 } },
        { status: 200, body: { records: [{ body: 'w6k=' }, { body: base64 }] } },
        { status: 200, body: { tail } },
        { status: 416, body: { tail } },
        { status: 404, body: { code: 'stream_not_found' } },
        { status: 400, body: { code: 'bad_json' } },
        { status: 202 },
      ])
      expect(errors).toEqual([])
    })

    it('streams events in the body of a response', async () => {
      const { events } = await load()
      const { contentType, followed, whileOpen, afterwards, toTheEnd, errors } = await events()
      expect(contentType).toBe('text/event-stream')
      expect(followed).toEqual([
        ['event: batch', 'id: 1,2,21', expect.stringContaining('"body":"b\u2028"')],
        ['event: ping', expect.stringMatching(/"tail":\{"seq_num":2,/)],
        ['event: batch', 'id: 2,3,30', expect.stringContaining('"body":"c"')],
      ])
      expect([whileOpen, afterwards]).toEqual([1, 0])
      expect(toTheEnd).toMatch(/^event: batch\nid: 1,2,21\n[^\n]*\n\ndata: \[DONE\]\n\n$/)
      expect(errors).toEqual([])
    })

    it('compresses responses that the page can decode, and decompresses requests of the page', async () => {
      const { gzip } = await load()
      const text = 'durable streams '.repeat(2_000)
      expect(await gzip(text)).toEqual({
        statuses: [200, 200, 200],
        codings: [null, 'gzip'],
        bodies: [text, text],
        isShorter: true,
        tail: 1,
        errors: [],
      })
    })

    it('compresses and decompresses the frames of sessions with gzip', () => exchangeFrames('gzip', '/'))

    // Bundles of the sources exclude zstd, which only the build makes suitable for bundlers.
    if (variant === 'package') {
      it('compresses and decompresses the frames of sessions with zstd', () =>
        exchangeFrames('zstd', '/wasm'))

      it('does not compress a response if the security policy of the page prevents zstd', async () => {
        const { codingOf } = await load()
        const text = 'durable streams '.repeat(2_000)
        const { status, coding, body, errors } = await codingOf('zstd', text)
        expect([status, coding, JSON.parse(body).records[0].body]).toEqual([200, null, text])
        expect(errors).toHaveLength(1)
      })

      it('does not compress the frames of a session if the policy prevents zstd', async () => {
        const { session } = await load()
        const { statuses, batches } = await session(await inputFrame('gzip'), 'zstd')
        expect(statuses).toEqual([200, 200])
        const frame = frameOf(batches)
        expect(frame.compression).toBeUndefined()
        const { records } = fromBinary(ReadBatchSchema, await messageOf(frame))
        expect(records.map(({ body }) => Buffer.compare(body, BODY))).toEqual([0])
      })
    }

    async function exchangeFrames(compression: 'gzip' | 'zstd', page: string) {
      const { session } = await load(page)
      const input = await inputFrame(compression)
      const { statuses, acks, batches, errors } = await session(input, compression)
      expect({ statuses, errors }).toEqual({ statuses: [200, 200], errors: [] })
      const ack = fromBinary(AppendAckSchema, await messageOf(frameOf(acks)))
      expect([ack.start?.seqNum, ack.end?.seqNum]).toEqual([0n, 1n])
      const frame = frameOf(batches)
      expect(frame.compression).toBe(compression)
      expect(frame.payload.length).toBeLessThan(BODY.length / 10)
      const { records } = fromBinary(ReadBatchSchema, await messageOf(frame))
      expect(records.map(({ body }) => Buffer.compare(body, BODY))).toEqual([0])
    }
  })
})
