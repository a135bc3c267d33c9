import { describe, expect, test } from 'vitest'
import { compress } from '../../src/wire/compression.ts'
import { encodeMessageFrame, encodeTerminalFrame } from '../../src/wire/frame.ts'
import { gated, testStorage } from '../support/index.ts'
import { inputFrame, inputMessage } from './inputs.ts'
import {
  ackOf,
  BASIN,
  BodyReader,
  bytesOf,
  type CallOptions,
  errorInFrame,
  errorOf,
  framesOf,
  RECORDS,
  startWithStream,
  tailOf,
  Upload,
} from './support.ts'

const SESSION = { 'content-type': 'svcs/proto', accept: 'application/protobuf' }

async function start(...options: Parameters<typeof startWithStream>) {
  const service = await startWithStream(...options)
  const baseline = service.clock.pending
  const open = (upload: Upload, more: CallOptions = {}) =>
    service.call('POST', RECORDS, { body: upload.body, headers: SESSION, ...more })
  const expectNothingOpen = () => {
    expect(service.hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0, waitingAppends: 0 })
    expect(service.clock.pending).toBe(baseline)
  }
  return { ...service, open, expectNothingOpen }
}

/** The outcome of a session: the ends of its acks, then how it ended. */
async function resultOf(bytes: Uint8Array): Promise<{ acks: number[]; error: unknown }> {
  const frames = await framesOf(bytes)
  const last = frames.at(-1)
  const error = last?.kind === 'terminal' ? errorInFrame(last) : undefined
  const acks = await Promise.all(frames.slice(0, error === undefined ? undefined : -1).map(ackOf))
  return { acks: acks.map(({ end }) => end), error }
}

describe('append session', () => {
  test('responds before the first input, and acknowledges inputs while the request continues', async () => {
    const { open, clock, expectNothingOpen } = await start()
    const upload = new Upload()
    const response = await open(upload)
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'svcs/proto'])
    expect(response.headers.get('cache-control')).toBe('no-cache, no-transform')
    const reader = new BodyReader(response)
    upload.write(inputFrame(['a', 'b']))
    await clock.settle()
    expect(await resultOf(reader.bytes)).toEqual({ acks: [2], error: undefined })
    upload.write(inputFrame(['c']))
    await clock.settle()
    expect(await resultOf(reader.bytes)).toEqual({ acks: [2, 3], error: undefined })
    upload.end()
    await reader.ended
    expect(await resultOf(reader.bytes)).toEqual({ acks: [2, 3], error: undefined })
    expectNothingOpen()
  })

  test('accepts frames split at any byte, compressed or not', async () => {
    const service = await start()
    const message = inputMessage(['x'.repeat(3000)])
    const bytes = Buffer.concat([
      inputFrame(['a']),
      encodeMessageFrame(await compress('gzip', message), { compression: 'gzip' }),
      encodeMessageFrame(await compress('zstd', message), { compression: 'zstd' }),
      inputFrame(['b']),
    ])
    const upload = new Upload()
    for (const byte of bytes) upload.write(new Uint8Array([byte]))
    upload.end()
    expect(await resultOf(await bytesOf(await service.open(upload)))).toEqual({
      acks: [1, 2, 3, 4],
      error: undefined,
    })
    const unsplit = new Upload()
    unsplit.write(bytes)
    unsplit.end()
    expect(await resultOf(await bytesOf(await service.open(unsplit)))).toMatchObject({ acks: [5, 6, 7, 8] })
  })

  test('pipelines inputs, whose conditions chain before anything is durable', async () => {
    const storage = gated(testStorage())
    storage.holding = true
    const { open, clock, hw, expectNothingOpen } = await start({}, { storage })
    const upload = new Upload()
    const reader = new BodyReader(await open(upload))
    for (let i = 0; i < 5; i++) upload.write(inputFrame(['x'], { matchSeqNum: i }))
    upload.end()
    await clock.settle()
    expect([storage.held, hw.stats().pendingAppends, reader.bytes.length]).toEqual([5, 5, 0])
    storage.release()
    await reader.ended
    expect(await resultOf(reader.bytes)).toEqual({ acks: [1, 2, 3, 4, 5], error: undefined })
    expectNothingOpen()
  })

  test('a client that reads acks slowly slows the session down without losing any', {
    tags: ['slow'],
  }, async () => {
    const { open, clock } = await start()
    const upload = new Upload()
    const response = await open(upload)
    const reader = response.body!.getReader()
    const first = reader.read()
    upload.write(Buffer.concat(Array(20_000).fill(inputFrame(['x']))))
    upload.end()
    const parts = [(await first).value!]
    await clock.settle()
    for (let next = await reader.read(); !next.done; next = await reader.read()) parts.push(next.value)
    const { acks, error } = await resultOf(Buffer.concat(parts))
    expect([acks.length, acks.at(-1), error]).toEqual([20_000, 20_000, undefined])
  })
})

describe('a failing append session', () => {
  test.each<[string, Uint8Array, object]>([
    ['a condition', inputFrame(['x'], { matchSeqNum: 9 }), { status: 412, seq_num_mismatch: 2 }],
    ['a token', inputFrame(['x'], { fencingToken: 'me' }), { status: 412, fencing_token_mismatch: '' }],
    ['an empty batch', inputFrame([]), { status: 422, code: 'invalid' }],
    ['broken protobuf', encodeMessageFrame(new Uint8Array([10, 99])), { status: 400, code: 'bad_frame' }],
    [
      'broken compression',
      encodeMessageFrame(new Uint8Array(9), { compression: 'gzip' }),
      { status: 400, code: 'bad_frame' },
    ],
    ['a length of 0', new Uint8Array([0, 0, 0]), { status: 400, code: 'bad_frame' }],
    ['a terminal frame', encodeTerminalFrame(200, '{}'), { status: 400, code: 'bad_frame' }],
  ])('%s: earlier inputs are acked, later ones are not appended', async (_, frame, error) => {
    const storage = gated(testStorage())
    storage.holding = true
    const service = await start({}, { storage })
    const upload = new Upload()
    const reader = new BodyReader(await service.open(upload))
    upload.write(inputFrame(['a']), inputFrame(['b']), frame, inputFrame(['never']))
    await service.clock.settle()
    expect(reader.bytes.length).toBe(0)
    storage.release()
    await reader.ended
    expect(await resultOf(reader.bytes)).toMatchObject({ acks: [1, 2], error })
    await service.clock.settle()
    expect(upload.isCancelled).toBe(true)
    expect(await tailOf(service)).toBe(2)
    service.expectNothingOpen()
    const next = service.call('POST', RECORDS, { json: { records: [{}], match_seq_num: 2 } })
    await service.clock.settle()
    storage.release()
    expect((await next).status).toBe(200)
  })

  test('errors before the session starts are ordinary responses, and the body is not read', async () => {
    const { open, call, expectNothingOpen } = await start()
    const upload = new Upload()
    const missing = await call('POST', '/v1/streams/none/records', { body: upload.body, headers: SESSION })
    expect(await errorOf(missing)).toMatchObject({ status: 404, code: 'stream_not_found' })
    const key = await open(upload, { headers: { ...SESSION, 'svc-encryption-key': 'x'.repeat(45) } })
    expect(await errorOf(key)).toMatchObject({ status: 400, code: 'bad_header' })
    expect(upload.body.locked).toBe(false)
    upload.end()
    const invalidFormat = await open(upload, { headers: { ...SESSION, 'svc-format': 'nonsense' } })
    expect(invalidFormat.status).toBe(200)
    expectNothingOpen()
  })
})

test.each(['ends', 'fails', 'is cancelled'])('a session that %s releases its stream', async (end) => {
  const service = await start({}, { limits: { cachedStreams: 1 } })
  const upload = new Upload()
  const reader = new BodyReader(await service.open(upload))
  upload.write(inputFrame(['a']))
  await service.clock.settle()
  if (end === 'ends') upload.end()
  else if (end === 'fails') upload.write(inputFrame([]))
  else await reader.cancel()
  await reader.ended
  await service.clock.settle()
  await service.hw.basin(BASIN).stream('t').append('x')
  await service.hw.basin(BASIN).stream('u').append('x')
  expect(service.hw.stats().cachedStreams).toBe(1)
})

describe('an append session whose client leaves', () => {
  test('stores complete inputs when its body ends early, and cuts the response off', async () => {
    const service = await start()
    const upload = new Upload()
    const reader = new BodyReader(await service.open(upload))
    upload.write(inputFrame(['a']))
    await service.clock.settle()
    const reset = new Error('reset')
    upload.fail(reset)
    await expect(reader.ended).rejects.toBe(reset)
    await service.clock.settle()
    expect(await tailOf(service)).toBe(1)
    expect(service.errors).toEqual([])
    service.expectNothingOpen()
  })

  test('ends at its signal', async () => {
    const service = await start()
    const upload = new Upload()
    const controller = new AbortController()
    const reader = new BodyReader(await service.open(upload, { signal: controller.signal }))
    upload.write(inputFrame(['a']))
    await service.clock.settle()
    controller.abort()
    await expect(reader.ended).rejects.toBe(controller.signal.reason)
    await service.clock.settle()
    expect(upload.isCancelled).toBe(true)
    expect(service.errors).toEqual([])
    service.expectNothingOpen()
  })

  test('ends when the response is cancelled while appends are in flight', async () => {
    const storage = gated(testStorage())
    storage.holding = true
    const service = await start({}, { storage })
    const upload = new Upload()
    const reader = new BodyReader(await service.open(upload))
    upload.write(inputFrame(['a']), inputFrame(['b']))
    await service.clock.settle()
    await reader.cancel()
    await service.clock.settle()
    expect(upload.isCancelled).toBe(true)
    storage.release()
    await service.clock.settle()
    expect(await tailOf(service)).toBe(2)
    service.expectNothingOpen()
  })
})
