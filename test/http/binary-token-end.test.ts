import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { open } from '../../src/index.ts'
import { EVERYTHING } from '../engine/service/tokens/support.ts'
import { gated, testClock, testStorage } from '../support/index.ts'
import { inputFrame } from './inputs.ts'
import { ackOf, BASIN, BodyReader, framesOf, RECORDS, readBatchOf, Upload } from './support.ts'

const LIFETIME_MS = 60_000

/**
 * A stream behind a handler with tokens, and an engine on the same storage that another process may have. The
 * storage holds appends on request.
 */
async function start() {
  const clock = testClock()
  const shared = testStorage({ shared: true })
  const storage = gated(shared)
  const hw = await open({ storage, clock })
  const other = await open({ storage: shared, clock })
  await hw.createBasin(BASIN)
  const stream = hw.basin(BASIN).stream('s')
  await hw.basin(BASIN).createStream('s')
  const token = await hw.issueAccessToken({
    id: 'token',
    scope: EVERYTHING,
    expiresAt: clock.now() + LIFETIME_MS,
  })
  const handler = createHandler(hw)
  const request = (method: string, path: string, body?: ReadableStream<Uint8Array>) =>
    handler(
      new Request(`http://localhost${path}`, {
        method,
        body: body ?? null,
        duplex: 'half',
        headers: { authorization: `Bearer ${token}`, 'svc-basin': BASIN, 'content-type': 's2s/proto' },
      } as RequestInit),
    )
  const close = () => Promise.all([hw.close(), other.close()])
  return { clock, storage, hw, other, stream, request, close }
}
type Started = Awaited<ReturnType<typeof start>>

const ENDS: [name: string, end: (started: Started) => Promise<unknown>][] = [
  ['is revoked', ({ hw }) => hw.revokeAccessToken('token')],
  ['is revoked by another process', ({ other }) => other.revokeAccessToken('token')],
  ['expires', ({ clock }) => clock.advance(LIFETIME_MS)],
]

async function expectAuthn(frame: Awaited<ReturnType<typeof framesOf>>[number]): Promise<void> {
  expect(frame).toMatchObject({ kind: 'terminal', status: 401 })
  expect(JSON.parse('body' in frame ? frame.body : '')).toMatchObject({ code: 'authn' })
}

describe.each(ENDS)('within a second after the token %s', (_name, end) => {
  test('a read session ends with a terminal frame and delivers no later record', async () => {
    const started = await start()
    const { clock, stream, request, close } = started
    await stream.append(['a', 'b'])
    const reader = new BodyReader(await request('GET', `${RECORDS}?seq_num=0`))
    await clock.settle()
    await end(started)
    await clock.advance(1_000)
    await stream.append('late')
    await reader.ended
    const frames = await framesOf(reader.bytes)
    await expectAuthn(frames.at(-1)!)
    const batches = await Promise.all(frames.slice(0, -1).map(readBatchOf))
    expect(batches.flatMap(({ bodies }) => bodies)).toEqual(['a', 'b'])
    expect(started.hw.stats()).toMatchObject({ openReads: 0, openSessions: 0 })
    await close()
  })

  test('an append session ends with a terminal frame and stores no later input', async () => {
    const started = await start()
    const { clock, storage, stream, request, close } = started
    const upload = new Upload()
    const reader = new BodyReader(await request('POST', RECORDS, upload.body))
    upload.write(inputFrame(['a']), inputFrame(['b']))
    await clock.settle()
    storage.holding = true
    upload.write(inputFrame(['in flight']))
    await clock.settle()
    expect(storage.held).toBe(1)
    await end(started)
    await clock.advance(1_000)
    await reader.ended
    const frames = await framesOf(reader.bytes)
    expect(frames.map(({ kind }) => kind)).toEqual(['message', 'message', 'terminal'])
    expect((await Promise.all(frames.slice(0, -1).map(ackOf))).map((ack) => ack.end)).toEqual([1, 2])
    await expectAuthn(frames.at(-1)!)
    expect(upload.isCancelled).toBe(true)
    storage.holding = false
    storage.release()
    await clock.settle()
    await stream.append('by another token')
    const bodies = (await stream.read({ seqNum: 0 }).toArray()).map(({ body }) => body)
    // The storage had received the third input, whose outcome the session did not report.
    expect(bodies).toEqual(['a', 'b', 'in flight', 'by another token'])
    expect(started.hw.stats()).toMatchObject({ openSessions: 0, pendingAppends: 0, appendBytesInFlight: 0 })
    await close()
  })

  test('an input whose frame is incomplete is not stored', async () => {
    const started = await start()
    const { clock, stream, request, close } = started
    const upload = new Upload()
    const reader = new BodyReader(await request('POST', RECORDS, upload.body))
    const frame = inputFrame(['late'])
    upload.write(inputFrame(['a']), frame.subarray(0, -1))
    await clock.settle()
    await end(started)
    await clock.advance(1_000)
    await reader.ended
    await expectAuthn((await framesOf(reader.bytes)).at(-1)!)
    expect((await stream.checkTail()).seqNum).toBe(1)
    expect(started.hw.stats().openSessions).toBe(0)
    await close()
  })
})
