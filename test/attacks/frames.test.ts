import { gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import {
  ackOf,
  BASIN,
  BodyReader,
  bytesOf,
  framesOf,
  RECORDS,
  startWithStream,
  Upload,
} from '../http/support.ts'
import { until } from '../node/support.ts'

const session = { 'content-type': 'svcs/proto' }

function input(
  bodies: readonly string[],
  more: { matchSeqNum?: bigint; fencingToken?: string } = {},
): Uint8Array {
  return toBinary(
    AppendInputSchema,
    create(AppendInputSchema, {
      records: bodies.map((body) => ({ body: new TextEncoder().encode(body) })),
      ...more,
    }),
  )
}
function frame(payload: Uint8Array, flag = 0): Uint8Array {
  const length = payload.length + 1
  return Buffer.concat([Buffer.from([length >> 16, (length >> 8) & 255, length & 255, flag]), payload])
}

/** An input of one record with headers of 1 + 1 bytes: 4 bytes each metered, 8 as protobuf. */
function poison(n: number, timestamp: Uint8Array = new Uint8Array(0)): Uint8Array {
  const header = Buffer.from([0x12, 6, 0x0a, 1, 0x61, 0x12, 1, 0x62])
  const record = Buffer.alloc(n * header.length)
  for (let i = 0; i < n; i++) header.copy(record, i * header.length)
  const varint = (v: number) => {
    const out: number[] = []
    for (; v > 127; v = Math.floor(v / 128)) out.push((v % 128) | 128)
    out.push(v)
    return Buffer.from(out)
  }
  return Buffer.concat([Buffer.from([0x0a]), varint(timestamp.length + record.length), timestamp, record])
}

describe('records of very many tiny headers', () => {
  const numbers = Buffer.from([0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])
  const append = (service: Awaited<ReturnType<typeof startWithStream>>, body: Uint8Array) =>
    service.call('POST', RECORDS, { headers: { 'content-type': 'application/protobuf' }, body })

  test.each([
    ['without a timestamp', poison(262_142)],
    ['with a large one', poison(262_142, numbers)],
  ])('that would fit no frame are refused: 1 MiB metered, more than a frame encoded, %s', async (_, body) => {
    const service = await startWithStream()
    const refused = await append(service, body)
    expect([refused.status, await refused.json()]).toMatchObject([422, { code: 'invalid' }])
    expect((await service.hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
  })

  test('the largest that are taken reach binary readers, live and from history', async () => {
    const service = await startWithStream()
    const reader = new BodyReader(await service.call('GET', RECORDS, { headers: session }))
    expect((await append(service, poison(262_120, numbers))).status).toBe(200)
    await until(() => reader.bytes.length > 2_000_000)
    await reader.cancel()
    const live = await framesOf(reader.bytes)
    expect(live.map(({ kind }) => kind)).toEqual(['message', 'message'])

    await service.call('POST', RECORDS, { json: { records: Array.from({ length: 500 }, () => ({})) } })
    const history = await service.call('GET', `${RECORDS}?seq_num=0&count=501`, { headers: session })
    const frames = await framesOf(await bytesOf(history))
    expect(frames.map(({ kind }) => kind)).toEqual(['message', 'message'])
    expect(service.errors).toEqual([])
  })
})

describe('append session frames', () => {
  test.each([
    ['length 0', Buffer.from([0, 0, 0]), 'bad_frame', 400],
    ['length over the limit, prefix only', Buffer.from([0x20, 0, 1]), 'bad_frame', 400],
    ['length 0xffffff', Buffer.from([0xff, 0xff, 0xff]), 'bad_frame', 400],
    ['flag only', Buffer.from([0, 0, 1, 0]), 'invalid', 422],
    ['unknown compression', frame(input(['x']), 0x60), 'bad_frame', 400],
    ['claims zstd', frame(input(['x']), 0x20), 'bad_frame', 400],
    ['claims gzip', frame(input(['x']), 0x40), 'bad_frame', 400],
    ['gzip cut short', frame(gzipSync(input(['x'])).subarray(0, -3), 0x40), 'bad_frame', 400],
    [
      'gzip with garbage',
      frame(Buffer.concat([gzipSync(input(['x'])), Buffer.from('garbage')]), 0x40),
      'bad_frame',
      400,
    ],
    ['gzip bomb', frame(gzipSync(Buffer.alloc(300_000_000)), 0x40), 'bad_frame', 400],
    ['gzip empty payload', frame(Buffer.alloc(0), 0x40), 'bad_frame', 400],
    ['terminal', frame(Buffer.from([0, 200, 123, 125]), 0x80), 'bad_frame', 400],
    ['terminal without status', frame(Buffer.from([0]), 0x80), 'bad_frame', 400],
    ['terminal with reserved compression', frame(Buffer.from([0, 200]), 0xe0), 'bad_frame', 400],
    ['wrong wire type', frame(Buffer.from([0x08, 1])), 'bad_frame', 400],
    ['token too long', frame(input(['x'], { fencingToken: 'x'.repeat(37) })), 'invalid', 422],
    ['match too large', frame(input(['x'], { matchSeqNum: 2n ** 53n })), 'invalid', 422],
  ])(
    '%s: acks of what was before, then one terminal frame; nothing is written',
    async (_, bad, code, status) => {
      const service = await startWithStream()
      const body = Buffer.concat([frame(input(['one'])), bad, frame(input(['never']))])
      const upload = new Upload()
      const response = await service.call('POST', RECORDS, { headers: session, body: upload.body })
      const reader = new BodyReader(response)
      for (const byte of body.subarray(0, 40)) upload.write(Uint8Array.of(byte))
      if (body.length > 40) upload.write(body.subarray(40))
      await reader.ended
      const frames = await framesOf(reader.bytes)
      expect(frames).toHaveLength(2)
      expect(await ackOf(frames[0]!)).toEqual({ start: 0, end: 1, tail: 1 })
      const last = frames[1]!
      expect(last.kind === 'terminal' && [last.status, JSON.parse(last.body).code]).toEqual([status, code])
      expect((await service.hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(1)
      await until(() =>
        Object.entries(service.hw.stats()).every(([name, n]) => name === 'cachedStreams' || n === 0),
      )
    },
  )

  test.each([0x10, 0x0f, 0x1f])('reserved bits are ignored: %i', async (flag) => {
    const service = await startWithStream()
    const response = await service.call('POST', RECORDS, {
      headers: session,
      body: frame(input(['x']), flag),
    })
    const frames = await framesOf(await bytesOf(response))
    expect(await ackOf(frames[0]!)).toMatchObject({ end: 1 })
  })

  test('a truncated last frame', async () => {
    const service = await startWithStream()
    const body = Buffer.concat([frame(input(['x'])), frame(input(['y'])).subarray(0, -1)])
    const frames = await framesOf(
      await bytesOf(await service.call('POST', RECORDS, { headers: session, body })),
    )
    expect(frames.map((f) => (f.kind === 'terminal' ? f.status : 'ack'))).toEqual(['ack', 400])
  })

  test('a stream deleted and made again under an open session does not get its records', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    const reader = new BodyReader(
      await service.call('POST', RECORDS, { headers: session, body: upload.body }),
    )
    upload.write(frame(input(['old'])))
    await until(() => reader.bytes.length > 0)
    await service.hw.basin(BASIN).deleteStream('s')
    await until(() => true)
    let created = 0
    while (created !== 201) created = (await service.call('PUT', '/v1/streams/s')).status
    upload.write(frame(input(['stray'])))
    await reader.ended
    const frames = await framesOf(reader.bytes)
    const last = frames.at(-1)!
    expect(last.kind === 'terminal' && [last.status, JSON.parse(last.body).code]).toEqual([
      409,
      'stream_deletion_pending',
    ])
    expect((await service.hw.basin(BASIN).stream('s').checkTail()).seqNum).toBe(0)
  })

  test('a follower of a deleted stream ends with 503 unavailable, SSE and frames', async () => {
    const service = await startWithStream()
    const sse = new BodyReader(
      await service.call('GET', RECORDS, { headers: { accept: 'text/event-stream' } }),
    )
    const binary = new BodyReader(await service.call('GET', RECORDS, { headers: session }))
    await service.call('POST', RECORDS, { json: { records: [{ body: 'x' }] } })
    await until(() => sse.text.includes('batch') && binary.bytes.length > 30)
    expect((await service.call('DELETE', '/v1/streams/s')).status).toBe(202)
    await Promise.all([sse.ended, binary.ended])
    expect(sse.text).toMatch(/event: error\ndata: \{"code":"unavailable","message":"[^"]*"\}\n\n$/)
    expect(sse.text).not.toContain('[DONE]')
    const last = (await framesOf(binary.bytes)).at(-1)!
    expect(last.kind === 'terminal' && [last.status, JSON.parse(last.body).code]).toEqual([
      503,
      'unavailable',
    ])
  })
})
