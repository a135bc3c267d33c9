import { AppendInput, AppendRecord } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { until } from '../node/support.ts'
import { all, bodies, longText, strings, take } from './records.ts'
import { basinOfFile, FETCH, openCounts, S2S, serviceOfFile, untilIdle } from './support.ts'

const service = await serviceOfFile()

describe.each([FETCH, S2S])('read session by $name', async (transport) => {
  const basin = await basinOfFile(service.server.url, transport)

  /** Records 0 to 4, at 1000, 2000, ... milliseconds. */
  async function fiveRecords() {
    const stream = await basin.stream()
    const records = [0, 1, 2, 3, 4].map((i) =>
      AppendRecord.string({ body: `${i}`, timestamp: (i + 1) * 1_000, headers: [['n', `${i}`]] }),
    )
    await stream.append(AppendInput.create(records))
    return stream
  }

  it('delivers headers and timestamps, as text and as bytes', async () => {
    const stream = await fiveRecords()
    const input = { start: { from: { seqNum: 1 } }, stop: { limits: { count: 1 } } }
    expect(await all(await stream.readSession(input))).toEqual([
      { seqNum: 1, timestamp: new Date(2_000), body: '1', headers: [['n', '1']] },
    ])
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    await stream.append(AppendInput.create([AppendRecord.bytes({ body })]))
    const bytes = await all(
      await stream.readSession(
        { start: { from: { seqNum: 4 } }, stop: { limits: { count: 2 } } },
        { as: 'bytes' },
      ),
    )
    expect(bytes.map((record) => [[...record.body], record.headers])).toEqual([
      [[0x34], [[Uint8Array.of(0x6e), Uint8Array.of(0x34)]]],
      [[...body], []],
    ])
  })

  it('delivers history, then live records, and reports when it has caught up', async () => {
    const stream = await fiveRecords()
    const session = await stream.readSession({ start: { from: { seqNum: 2 } } })
    const caughtUp = session.caughtUp()
    expect(bodies(await take(session, 3))).toEqual(['2', '3', '4'])
    expect(await caughtUp).toEqual({ seqNum: 5, timestamp: new Date(5_000) })
    expect(session.isCaughtUp()).toBe(true)
    for (const body of ['live 1', 'live 2']) {
      const ack = await stream.append(strings(body))
      expect(bodies(await take(session, 1))).toEqual([body])
      expect(await session.caughtUp()).toEqual(ack.end)
      expect(session.nextReadPosition()?.seqNum).toBe(ack.end.seqNum)
      expect(session.lastObservedTail()).toEqual(ack.tail)
    }
    await session.cancel()
  })

  it('hides command records and advances past them', async () => {
    const stream = await basin.stream('a')
    const session = await stream.readSession({ start: { from: { seqNum: 0 } }, ignoreCommandRecords: true })
    await stream.append(AppendInput.create([AppendRecord.fence('t')]))
    await stream.append(strings('b'))
    expect(bodies(await take(session, 2))).toEqual(['a', 'b'])
    expect(session.nextReadPosition()?.seqNum).toBe(3)
    await session.cancel()
  })

  it('ends when the stream is deleted', async () => {
    const stream = await basin.stream('a')
    const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect(bodies(await take(session, 1))).toEqual(['a'])
    await session.caughtUp()
    await basin.basin.streams.delete({ stream: stream.name })
    // The client treats the end as a connection failure and reconnects; then there is no stream.
    await expect(take(session, 1)).rejects.toMatchObject({ status: 404, code: 'stream_not_found' })
  })

  it('releases everything when it is cancelled, aborted or abandoned', { tags: ['slow'] }, async () => {
    await untilIdle(service)
    const stream = await fiveRecords()
    await stream.append(strings(...Array.from({ length: 1_000 }, () => longText(900))))
    const waiting = await stream.readSession()
    await waiting.caughtUp()
    const aborted = new AbortController()
    const started = await stream.readSession(
      { start: { from: { tailOffset: 0 } } },
      { signal: aborted.signal },
    )
    await started.caughtUp()
    const half = await stream.readSession({ start: { from: { seqNum: 0 } } })
    for await (const { seqNum } of half) if (seqNum === 3) break
    await until(() => openCounts(service).waitingReads === 2)
    await waiting.cancel()
    aborted.abort()
    await started.cancel().catch(() => {})
    await untilIdle(service)
  })
})
