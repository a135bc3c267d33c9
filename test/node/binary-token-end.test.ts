import { once } from 'node:events'
import { describe, expect, onTestFinished, test } from 'vitest'
import { serve } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { EVERYTHING } from '../engine/service/tokens/support.ts'
import { inputFrame } from '../http/inputs.ts'
import { ackOf, framesOf, readBatchOf } from '../http/support.ts'
import { testClock, testStorage } from '../support/index.ts'
import { http2Client } from './support.ts'

const BASIN = 'test-basin'
const RECORDS = '/v1/streams/s/records'
const LIFETIME_MS = 60_000

async function start() {
  const clock = testClock()
  const shared = testStorage({ shared: true })
  const hw = await open({ storage: shared, clock })
  const other = await open({ storage: shared, clock })
  await hw.createBasin(BASIN)
  const stream = hw.basin(BASIN).stream('s')
  await hw.basin(BASIN).createStream('s')
  const token = await hw.issueAccessToken({
    id: 'token',
    scope: EVERYTHING,
    expiresAt: clock.now() + LIFETIME_MS,
  })
  const server = await serve(hw, { port: 0 })
  onTestFinished(async () => {
    await server.close({ graceMs: 0 })
    await Promise.all([hw.close(), other.close()])
  })
  const client = await http2Client(server.url)
  const request = (method: string, path: string) => {
    const session = client.request(
      {
        ':method': method,
        ':path': path,
        authorization: `Bearer ${token}`,
        'svc-basin': BASIN,
        'content-type': 's2s/proto',
      },
      { endStream: method === 'GET' },
    )
    const chunks: Buffer[] = []
    session.on('data', (chunk: Buffer) => chunks.push(chunk))
    // The server resets what a client sends after the end.
    session.on('error', () => {})
    const ended = new Promise<void>((resolve) => session.once('end', resolve))
    return { session, ended, received: () => framesOf(Buffer.concat(chunks)) }
  }
  return { clock, hw, other, stream, server, request }
}
type Started = Awaited<ReturnType<typeof start>>

const ENDS: [name: string, end: (started: Started) => Promise<unknown>][] = [
  ['is revoked', ({ hw }) => hw.revokeAccessToken('token')],
  [
    'is revoked by another process',
    async ({ other, clock }) => {
      await other.revokeAccessToken('token')
      await clock.advance(1_000)
    },
  ],
  ['expires', ({ clock }) => clock.advance(LIFETIME_MS)],
]

describe.each(ENDS)('over HTTP/2, when the token %s', (_name, end) => {
  test('a read session ends with a terminal frame', async () => {
    const started = await start()
    await started.stream.append(['a', 'b'])
    const { session, ended, received } = started.request('GET', `${RECORDS}?seq_num=0`)
    await once(session, 'data')
    await end(started)
    await ended
    const frames = await received()
    expect(frames.at(-1)).toMatchObject({ kind: 'terminal', status: 401 })
    const batches = await Promise.all(frames.slice(0, -1).map(readBatchOf))
    expect(batches.flatMap(({ bodies }) => bodies)).toEqual(['a', 'b'])
    await expect.poll(() => started.server.counts().requests).toBe(0)
    expect(started.hw.stats().openReads).toBe(0)
  })

  test('an append session that sends without pause ends, and nothing it sends later is stored', async () => {
    const started = await start()
    const { session, ended, received } = started.request('POST', RECORDS)
    let sent = 0
    let isOver = false
    const send = () => {
      if (isOver) return
      session.write(inputFrame([`${sent++}`]))
      setImmediate(send)
    }
    send()
    await once(session, 'data')
    await end(started)
    await ended
    isOver = true
    const sentBeforeEnd = sent
    for (let i = 0; i < 10; i++) session.write(inputFrame([`${sent++}`]))
    session.end()
    const frames = await received()
    expect(frames.at(-1)).toMatchObject({ kind: 'terminal', status: 401 })
    const acks = await Promise.all(frames.slice(0, -1).map(ackOf))
    expect(acks.map((ack) => ack.end)).toEqual(acks.map((_, i) => i + 1))
    await expect.poll(() => started.server.counts().requests).toBe(0)
    expect(started.hw.stats()).toMatchObject({ openSessions: 0, pendingAppends: 0 })
    const bodies = (await started.stream.read({ seqNum: 0 }).toArray()).map(({ body }) => body)
    expect(bodies).toEqual(bodies.map((_, i) => `${i}`))
    expect(bodies.length).toBeGreaterThanOrEqual(acks.length)
    expect(bodies.length).toBeLessThanOrEqual(sentBeforeEnd)
  })
})
