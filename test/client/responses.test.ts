import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Headwater, HeadwaterError, ReadQuery, SequencedRecord } from '../../src/index.ts'
import { encodeRecords } from '../../src/storage/block-codec.ts'
import { encodeMessageFrame, encodeTerminalFrame } from '../../src/wire/frame.ts'
import { encodeAppendAck, encodeHeartbeat } from '../../src/wire/protobuf.ts'
import { connectTo, connectUnreliably, failureOf, whileTimePasses } from './network.ts'

const FRAMES = { 'content-type': 'svcs/proto' }
const PROTOBUF = { 'content-type': 'application/protobuf' }
const NOT_JSON = '<html>'
const TAIL = '{"tail":{"seq_num":1,"timestamp":2}}'

function page(status: number, text = NOT_JSON): Response {
  return new Response(text, { status, headers: { 'content-type': 'text/html' } })
}

function json(value: unknown, status = 200): Response {
  return Response.json(value, { status })
}

function jsonText(text: string): Response {
  return new Response(text, { headers: { 'content-type': 'application/json' } })
}

function record(seqNum: number, timestamp = 0, length = 1) {
  return { seqNum, timestamp, headers: [], body: new Uint8Array(length) }
}

function bytes(data: Uint8Array): BodyInit {
  return data as Uint8Array<ArrayBuffer>
}

describe('a response that the protocol does not allow', () => {
  it.each<[string, () => Response]>([
    ['another shape', () => json({ tail: 7 })],
    ['a negative number', () => json({ tail: { seq_num: -1, timestamp: 0 } })],
    ['a number beyond 2^53 - 1', () => jsonText('{"tail":{"seq_num":9007199254740993,"timestamp":0}}')],
    ['an empty body', () => jsonText('')],
    ['a redirect', () => new Response(null, { status: 302, headers: { location: 'http://else/' } })],
    ['null', () => json(null)],
  ])('is a typed error: %s', async (_, respond) => {
    const { stream, requests } = await connectTo(respond)
    expect(await failureOf(stream.checkTail())).toMatchObject({
      code: 'other',
      message: expect.stringMatching(/^unexpected response from the server: /),
      mayHaveEffects: false,
    })
    expect(requests).toHaveLength(1)
  })

  it.each([['text'], [7], { default_stream_config: 'large' }])(
    'does not prove that a basin with a short name exists: %j',
    async (value) => {
      const { hw } = await connectTo(() => json(value))
      expect(await failureOf(hw.createBasin('short'))).toMatchObject({
        code: 'other',
        message: expect.stringMatching(/^unexpected response from the server: /),
      })
    },
  )

  it.each<[string, () => Response]>([
    ['a page of a captive portal', () => page(200)],
    ['text', () => new Response(NOT_JSON)],
    ['a page of a gateway that wants a login', () => page(401)],
    ['a page of a gateway that blocks', () => page(403)],
    ['JSON without a content type', () => new Response(new TextEncoder().encode(TAIL))],
  ])('is retried if it seems to be of something in between: %s', async (_, first) => {
    const replies = [first(), jsonText(TAIL)]
    const { stream, requests, clock } = await connectTo(() => replies.shift()!, { retries: 1 })
    expect(await whileTimePasses(clock, stream.checkTail())).toEqual({ seqNum: 1, timestamp: 2 })
    expect(requests).toHaveLength(2)
  })

  it.each<[string, () => Response]>([
    ['a page', () => page(200)],
    ['a page without a content type', () => new Response(new TextEncoder().encode(NOT_JSON))],
    ['an empty page', () => page(200, '')],
    ['JSON', () => json({})],
    ['an error', () => json({ code: 'access_token_not_found', message: 'no such token' })],
  ])('is no success of a call without a result: %s', async (_, respond) => {
    const { hw, stream } = await connectTo(respond, { retries: 0 })
    const deletions = [
      () => hw.revokeAccessToken('token'),
      () => hw.basin('basin').delete(),
      () => stream.delete(),
    ]
    for (const remove of deletions) {
      expect(await failureOf(remove())).toMatchObject({
        code: 'unavailable',
        message: expect.stringMatching(/^unexpected response/),
        retryable: true,
        mayHaveEffects: true,
      })
    }
  })

  it.each<[string, () => Response]>([
    ['no content', () => new Response(null, { status: 204 })],
    ['an empty body', () => new Response(null, { status: 202 })],
    ['an empty text', () => new Response('', { headers: { 'content-type': 'text/plain' } })],
  ])('is none of a call without a result with %s', async (_, respond) => {
    const { hw } = await connectTo(respond)
    await expect(hw.revokeAccessToken('token')).resolves.toBeUndefined()
  })

  it('is cut off at 16 MiB', async () => {
    let isCancelled = false
    const { stream } = await connectTo(() => {
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
        cancel: () => {
          isCancelled = true
        },
      })
      return new Response(body)
    })
    expect(await failureOf(stream.checkTail())).toMatchObject({ message: expect.stringMatching(/too long/) })
    expect(isCancelled).toBe(true)
  })

  it.each<[string, Parameters<typeof encodeAppendAck>[0] | Uint8Array]>([
    ['of another number of records', ack(0, 2, 2)],
    ['of another position than the condition', ack(5, 6, 6)],
    ['with a tail below its end', ack(0, 1, 0)],
    ['that is not protobuf', new Uint8Array([0xff, 0xff])],
  ])('never becomes an ack: %s', async (_, message) => {
    const body = message instanceof Uint8Array ? message : encodeAppendAck(message)
    const { stream } = await connectTo(() => new Response(bytes(body), { headers: PROTOBUF }))
    expect(await failureOf(stream.append('a', { matchSeqNum: 0 }))).toMatchObject({
      code: 'other',
      mayHaveEffects: true,
    })
  })

  it.each<[string, SequencedRecord[], ReadQuery?, tail?: number]>([
    ['repeat', [record(0), record(0)]],
    ['go back', [record(5), record(4)]],
    ['are before the start', [record(0)], { seqNum: 1 }],
    ['are too many', Array.from({ length: 1_001 }, (_, i) => record(i))],
    ['are more than asked for', [record(0), record(1)], { count: 1 }],
    ['have falling timestamps', [record(0, 2), record(1, 1)]],
    ['are more bytes than asked for', [record(0, 0, 100)], { bytes: 50 }],
    ['are after the end', [record(0, 5)], { until: 5 }],
    ['are more than 1 MiB', [record(0, 0, 1_100_000)]],
    ['are beyond the tail', [record(0), record(1)], {}, 1],
  ])('never becomes records that %s', async (_, records, query = {}, tail) => {
    const atTail = tail === undefined ? [] : [encodeHeartbeat({ seqNum: tail, timestamp: 0 })]
    const body = concat(encodeRecords(records), ...atTail)
    const { stream } = await connectTo(({ headers }) => {
      const isSession = headers.get('content-type') === 'svcs/proto'
      const content = isSession ? encodeMessageFrame(body) : body
      return new Response(bytes(content), { headers: isSession ? FRAMES : PROTOBUF })
    })
    const unexpected = { code: 'other', message: expect.stringMatching(/^unexpected response/) }
    expect(await failureOf(stream.readBatch(query))).toMatchObject(unexpected)
    expect(await failureOf(stream.read(query).toArray())).toMatchObject(unexpected)
  })

  it.each<[string, Uint8Array]>([
    ['without content', new Uint8Array([0, 0, 0])],
    ['longer than 2 MiB', new Uint8Array([0xff, 0xff, 0xff])],
    ['with garbage', encodeMessageFrame(new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9]))],
    ['with unknown compression', new Uint8Array([0, 0, 2, 0x60, 0])],
    ['with damaged gzip', new Uint8Array([0, 0, 5, 0x40, 1, 2, 3, 4])],
    ['with damaged zstd', new Uint8Array([0, 0, 5, 0x20, 1, 2, 3, 4])],
    ['after a terminal frame', concat(encodeTerminalFrame(500, 'x'), new Uint8Array([1]))],
  ])('ends a session that receives a frame %s', async (_, frame) => {
    const { clock, stream } = await connectTo(() => new Response(bytes(frame), { headers: FRAMES }), {
      resumes: 1,
    })
    const error = await whileTimePasses(clock, failureOf(stream.follow({ seqNum: 0 }).toArray()))
    expect(error.code).toMatch(/^(other|unavailable)$/)
  })

  it('ends a session whose events are malformed', async () => {
    vi.stubGlobal('WorkerGlobalScope', class {})
    onTestFinished(() => void vi.unstubAllGlobals())
    const body = 'event: batch\ndata: {"records":[{"seq_num":"0"}]}\n\n'
    const init = { headers: { 'content-type': 'text/event-stream' } }
    const { stream } = await connectTo(() => new Response(body, init), { headerPrefix: 's2' })
    expect(await failureOf(stream.follow({ seqNum: 0 }).toArray())).toMatchObject({ code: 'other' })
  })

  it('ends a session if it is of another form', async () => {
    const { stream, requests } = await connectTo(() => json({ records: [] }))
    expect(await failureOf(stream.follow().toArray())).toMatchObject({
      code: 'other',
      message: 'unexpected response from the server: it is not a read session; check `url`',
    })
    expect(requests).toHaveLength(1)
  })

  it('quotes at most 1,000 characters of a message, without control characters', async () => {
    const message = `\u001b[31m${'x'.repeat(100_000)}`
    const { stream } = await connectTo(() => json({ code: 'invalid', message }, 422))
    const error = await failureOf(stream.checkTail())
    expect(error.message.length).toBeLessThan(1_010)
    expect(error.message).not.toContain('\u001b')
  })

  it('is an error of its status without a known code', async () => {
    const { clock, stream } = await connectTo(() => json({ code: 'hot_server', message: 'busy' }, 502), {
      retries: 1,
    })
    expect(await whileTimePasses(clock, failureOf(stream.append('a')))).toMatchObject({
      code: 'unavailable',
      message: 'the server responded with status 502: busy (hot_server)',
      mayHaveEffects: true,
    })
  })
})

describe('an error response', () => {
  it('names fields as the library does', async () => {
    const { stream } = await connectTo(() =>
      json({ code: 'invalid', message: '`match_seq_num` must be smaller' }, 422),
    )
    expect(await failureOf(stream.append('a'))).toMatchObject({
      code: 'invalid',
      message: '`matchSeqNum` must be smaller',
      field: 'matchSeqNum',
    })
  })

  it('about the encryption key names it', async () => {
    const { stream } = await connectTo(() =>
      json({ code: 'bad_header', message: 'Missing encryption key header' }, 400),
    )
    expect(await failureOf(stream.append('a'))).toMatchObject({ field: 'encryptionKey' })
  })

  const CLIENT_REQUIRE = { timestamping: { mode: 'client-require' } } as const

  it.each<[error: string, Partial<HeadwaterError>, call: (hw: Headwater) => Promise<unknown>]>([
    [
      'a missing timestamp',
      { code: 'invalid', field: 'timestamp' },
      async (hw) => {
        await hw.basin('basin').stream('stream').reconfigure(CLIENT_REQUIRE)
        await hw.basin('basin').stream('stream').append('a')
      },
    ],
    [
      'a token without permissions',
      { code: 'invalid', field: 'scope' },
      (hw) => hw.issueAccessToken({ id: 'a', scope: {} }),
    ],
    [
      'usage that is not metered',
      { code: 'unsupported', retryable: false },
      (hw) => hw.metrics({ set: 'active-basins', start: 0, end: 1 }),
    ],
  ])('is the error of an engine in process: %s', async (_, expected, call) => {
    const { hw, engine } = await connectUnreliably()
    const [ofClient, ofEngine] = [await failureOf(call(hw)), await failureOf(call(engine))]
    expect(ofClient).toMatchObject(expected)
    expect({ ...ofClient, message: ofClient.message }).toEqual({ ...ofEngine, message: ofEngine.message })
  })
})

describe('sessions', () => {
  it('deliver what came before a failure', async () => {
    const body = concat(
      encodeMessageFrame(encodeRecords([record(0)])),
      encodeTerminalFrame(400, '{"code":"decryption_failed","message":"no"}'),
    )
    const { stream } = await connectTo(() => new Response(bytes(body), { headers: FRAMES }))
    const records = stream.follow({ seqNum: 0 })[Symbol.asyncIterator]()
    expect((await records.next()).value?.seqNum).toBe(0)
    expect(await failureOf(records.next())).toMatchObject({ code: 'decryption_failed' })
  })

  it('fail if each connection ends because the server is about to stop', async () => {
    const body = encodeTerminalFrame(503, '{"code":"server_draining","message":"stopping"}')
    const { clock, stream, requests } = await connectTo(
      () => new Response(bytes(body), { headers: FRAMES }),
      { resumes: 2 },
    )
    const failure = await whileTimePasses(clock, failureOf(stream.follow({ seqNum: 0 }).toArray()))
    expect(failure).toMatchObject({ code: 'server_draining' })
    expect(requests).toHaveLength(3)
  })

  it('skip fields and events of later versions', async () => {
    const unknown = new Uint8Array([(15 << 3) | 2, 2, 1, 1, (14 << 3) | 0, 0x85, 0x01])
    const body = concat(
      encodeMessageFrame(concat(encodeRecords([record(0)]), unknown)),
      encodeMessageFrame(encodeHeartbeat({ seqNum: 1, timestamp: 0 })),
    )
    const { stream } = await connectTo(() => new Response(bytes(body), { headers: FRAMES }))
    expect(await stream.read().toArray()).toHaveLength(1)
  })
})

function ack(start: number, end: number, tail: number) {
  const at = (seqNum: number) => ({ seqNum, timestamp: 1 })
  return { start: at(start), end: at(end), tail: at(tail) }
}

function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}
