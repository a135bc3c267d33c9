import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import type { AccessTokenInput } from '../../src/index.ts'
import { encodeMessageFrame } from '../../src/wire/frame.ts'
import { gated, testClock, testStorage } from '../support/index.ts'
import { AppendInputSchema } from '../wire/gen/records_pb.ts'
import { inputFrame } from './inputs.ts'
import {
  ackOf,
  BASIN,
  BodyReader,
  errorInFrame,
  errorOf,
  framesOf,
  parseSse,
  RECORDS,
  readBatchOf,
  startWithStream,
  tailOf,
  Upload,
} from './support.ts'

const SESSION = { 'content-type': 'svcs/proto', accept: 'application/protobuf' }
const ANY = { basins: { prefix: '' }, streams: { prefix: '' } }

/** A stream with one record, and a token for it. The storage holds appends on request. */
async function start(ops: NonNullable<AccessTokenInput['scope']>['ops'] = ['read', 'append', 'check-tail']) {
  const clock = testClock()
  const storage = gated(testStorage())
  const service = await startWithStream({}, { storage, clock })
  await service.hw.basin(BASIN).stream('s').append('first')
  const token = await service.hw.issueAccessToken({ id: 'token', scope: { ...ANY, ops } })
  const call = service.with({ auth: 'token' })
  const headers = { authorization: `Bearer ${token}` }
  return { ...service, clock, storage, call, headers }
}
type Started = Awaited<ReturnType<typeof start>>

/** Other ways to end a token, and all kinds of sessions, are in test/engine/access/session-ends.test.ts. */
describe('within a second after the token is revoked', () => {
  const end = ({ hw }: Started) => hw.revokeAccessToken('token')

  /** Ends the token, and whatever was opened with it. */
  async function endOf(started: Started) {
    await end(started)
    await started.clock.advance(1_000)
    await started.hw.basin(BASIN).stream('s').append('late')
  }
  const expectNothingOpen = ({ hw }: Started) =>
    expect(hw.stats()).toMatchObject({
      openReads: 0,
      openSessions: 0,
      pendingAppends: 0,
      appendBytesInFlight: 0,
    })

  test('a binary read session ends with a terminal frame', async () => {
    const started = await start()
    const headers = { ...started.headers, ...SESSION }
    const reader = new BodyReader(await started.call('GET', `${RECORDS}?seq_num=0`, { headers }))
    await started.clock.settle()
    await endOf(started)
    await reader.ended
    const frames = await framesOf(reader.bytes)
    expect(errorInFrame(frames.pop())).toMatchObject({ status: 401, code: 'authn' })
    const batches = await Promise.all(frames.map(readBatchOf))
    expect(batches.flatMap(({ bodies }) => bodies)).toEqual(['first'])
    expectNothingOpen(started)
    const next = await started.call('GET', `${RECORDS}/tail`, { headers: started.headers })
    expect(next.status).toBe(401)
  })

  test('an SSE session ends with an error event', async () => {
    const started = await start()
    const headers = { ...started.headers, accept: 'text/event-stream' }
    const reader = new BodyReader(await started.call('GET', `${RECORDS}?seq_num=0`, { headers }))
    await started.clock.settle()
    await endOf(started)
    await reader.ended
    const events = parseSse(reader.text).filter(({ event }) => event !== 'ping')
    expect(events.map(({ event }) => event)).toEqual(['batch', 'error'])
    expect(JSON.parse(events[1]!.data)).toMatchObject({ code: 'authn' })
    expectNothingOpen(started)
  })

  test('a long poll returns 401', async () => {
    const started = await start()
    const answer = started.call('GET', `${RECORDS}?wait=60&seq_num=1`, { headers: started.headers })
    await started.clock.settle()
    expect(started.hw.stats().waitingReads).toBe(1)
    await endOf(started)
    expect(await errorOf(await answer)).toMatchObject({ status: 401, code: 'authn' })
    expectNothingOpen(started)
  })

  test('an append session ends with a terminal frame after the acks of earlier inputs', async () => {
    const started = await start()
    const { clock, storage } = started
    const upload = new Upload()
    const headers = { ...started.headers, ...SESSION }
    const reader = new BodyReader(await started.call('POST', RECORDS, { body: upload.body, headers }))
    upload.write(inputFrame(['a']), inputFrame(['b']))
    await clock.settle()
    storage.holding = true
    // The last frame is not complete.
    upload.write(inputFrame(['in flight']), inputFrame(['never']).subarray(0, -1))
    await clock.settle()
    expect(storage.held).toBe(1)
    await end(started)
    await clock.advance(1_000)
    await reader.ended
    const frames = await framesOf(reader.bytes)
    expect(frames.map(({ kind }) => kind)).toEqual(['message', 'message', 'terminal'])
    expect((await Promise.all(frames.slice(0, -1).map(ackOf))).map((ack) => ack.end)).toEqual([2, 3])
    expect(frames.at(-1)).toMatchObject({ status: 401 })
    expect(upload.isCancelled).toBe(true)
    storage.holding = false
    storage.release()
    await clock.settle()
    // The storage had received the third input, whose outcome the session did not report.
    expect(await tailOf(started)).toBe(4)
    expectNothingOpen(started)
  })
})

test('a session may append, but not fence, when its token does not permit it', async () => {
  const started = await start(['append', 'trim'])
  const upload = new Upload()
  const headers = { ...started.headers, ...SESSION }
  const reader = new BodyReader(await started.call('POST', RECORDS, { body: upload.body, headers }))
  const fence = { records: [{ headers: [{ value: new TextEncoder().encode('fence') }] }] }
  const fenceFrame = encodeMessageFrame(toBinary(AppendInputSchema, create(AppendInputSchema, fence)))
  upload.write(inputFrame(['a']), fenceFrame, inputFrame(['b']))
  await reader.ended
  const frames = await framesOf(reader.bytes)
  expect(frames.map(({ kind }) => kind)).toEqual(['message', 'terminal'])
  expect(frames.at(-1)).toMatchObject({ status: 403 })
  expect(await tailOf(started)).toBe(2)
})
