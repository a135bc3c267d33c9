import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, test } from 'vitest'
import { AppendInputSchema } from '../../src/wire/gen/records_pb.ts'
import { encodeMessageFrame } from '../../src/wire/session-frames.ts'
import { inputFrame } from './inputs.ts'
import { BodyReader, errorOf, framesOf, parseSse, RECORDS, startWithStream, Upload } from './support.ts'

const SESSION = { 'content-type': 'svcs/proto', accept: 'application/protobuf' }

/** A stream with one record, and a token for it. */
async function start() {
  const service = await startWithStream()
  await service.hw.basin('test-basin').stream('s').append('first')
  const token = await service.hw.issueAccessToken({
    id: 'token',
    scope: {
      basins: { prefix: '' },
      streams: { prefix: '' },
      opGroups: { stream: { read: true, write: true } },
    },
  })
  const revoke = async () => {
    await service.hw.revokeAccessToken('token')
    await service.clock.settle()
  }
  return {
    ...service,
    call: service.with({ auth: 'token' }),
    headers: { authorization: `Bearer ${token}` },
    revoke,
  }
}

describe('when the token is revoked', () => {
  test('an SSE session ends with an error event', async () => {
    const { call, headers, revoke, hw, clock } = await start()
    const response = await call('GET', `${RECORDS}?seq_num=0`, {
      headers: { ...headers, accept: 'text/event-stream' },
    })
    const reader = new BodyReader(response)
    await clock.settle()
    await revoke()
    await reader.ended
    const events = parseSse(reader.text)
    expect(events.map(({ event }) => event).filter((event) => event !== 'ping')).toEqual(['batch', 'error'])
    expect(JSON.parse(events.at(-1)!.data)).toMatchObject({ code: 'authn' })
    expect(hw.stats().openReads).toBe(0)
  })

  test('a binary read session ends with a terminal frame', async () => {
    const { call, headers, revoke, hw, clock } = await start()
    const response = await call('GET', `${RECORDS}?seq_num=0`, { headers: { ...headers, ...SESSION } })
    const reader = new BodyReader(response)
    await clock.settle()
    await revoke()
    await reader.ended
    const last = (await framesOf(reader.bytes)).at(-1)
    expect(last).toMatchObject({ kind: 'terminal', status: 401 })
    expect(hw.stats().openReads).toBe(0)
  })

  test('a long poll returns 401', async () => {
    const { call, headers, revoke, hw, clock } = await start()
    const answer = call('GET', `${RECORDS}?wait=60&seq_num=1`, { headers })
    await clock.settle()
    expect(hw.stats().waitingReads).toBe(1)
    await revoke()
    expect(await errorOf(await answer)).toMatchObject({ status: 401, code: 'authn' })
    expect(hw.stats().openReads).toBe(0)
  })

  test('an append session ends with a terminal frame after the acks of earlier inputs', async () => {
    const { call, headers, revoke, hw, clock } = await start()
    const upload = new Upload()
    const response = await call('POST', RECORDS, { body: upload.body, headers: { ...headers, ...SESSION } })
    const reader = new BodyReader(response)
    upload.write(inputFrame(['a']), inputFrame(['b']))
    await clock.settle()
    await revoke()
    await reader.ended
    const frames = await framesOf(reader.bytes)
    expect(frames.map(({ kind }) => kind)).toEqual(['message', 'message', 'terminal'])
    expect(frames.at(-1)).toMatchObject({ status: 401 })
    expect(upload.isCancelled).toBe(true)
    expect((await hw.basin('test-basin').stream('s').checkTail()).seqNum).toBe(3)
  })

  test('sessions release everything, and the next request is rejected', async () => {
    const { call, headers, revoke, clock } = await start()
    const before = clock.pending
    const response = await call('GET', RECORDS, { headers: { ...headers, accept: 'text/event-stream' } })
    const reader = new BodyReader(response)
    await clock.settle()
    expect(clock.pending).toBeGreaterThan(before)
    await revoke()
    await reader.ended
    await clock.settle()
    expect(clock.pending).toBe(before)
    expect((await call('GET', `${RECORDS}/tail`, { headers })).status).toBe(401)
  })
})

test('a session may append, but not fence or trim, when its token does not permit it', async () => {
  const { call, hw } = await startWithStream().then((service) => ({
    hw: service.hw,
    call: service.with({ auth: 'token' }),
  }))
  const token = await hw.issueAccessToken({
    id: 'appender',
    scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['append', 'trim'] },
  })
  const headers = { authorization: `Bearer ${token}`, ...SESSION }
  const upload = new Upload()
  const response = await call('POST', RECORDS, { body: upload.body, headers })
  const reader = new BodyReader(response)
  const fence = { records: [{ headers: [{ value: new TextEncoder().encode('fence') }] }] }
  const fenceFrame = encodeMessageFrame(toBinary(AppendInputSchema, create(AppendInputSchema, fence)))
  upload.write(inputFrame(['a']), fenceFrame, inputFrame(['b']))
  await reader.ended
  const frames = await framesOf(reader.bytes)
  expect(frames.map(({ kind }) => kind)).toEqual(['message', 'terminal'])
  expect(frames.at(-1)).toMatchObject({ status: 403 })
  expect((await hw.basin('test-basin').stream('s').checkTail()).seqNum).toBe(1)
})
