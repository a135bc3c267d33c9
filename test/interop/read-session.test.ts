import { AppendInput, AppendRecord, RangeNotSatisfiableError } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { all, bodies, longText, strings, take } from './records.ts'
import { basinOfFile, openCounts, serviceOfFile, TRANSPORTS, until, untilIdle } from './support.ts'

const service = await serviceOfFile()

describe.each(TRANSPORTS)('read session by $name', async (transport) => {
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

  it.each([
    ['a sequence number', { seqNum: 3 }, ['3', '4']],
    ['a timestamp', { timestamp: 2_001 }, ['2', '3', '4']],
    ['an offset from the tail', { tailOffset: 1 }, ['4']],
    ['an offset beyond the start', { tailOffset: 100 }, ['0', '1', '2', '3', '4']],
  ])('starts at %s', async (_, from, expected) => {
    const stream = await fiveRecords()
    const session = await stream.readSession({ start: { from }, stop: { limits: { count: 100 } } })
    expect(bodies(await all(session))).toEqual(expected)
  })

  it.each([
    ['count', { limits: { count: 2 } }, ['0', '1']],
    ['a count of everything', { limits: { count: 5 } }, ['0', '1', '2', '3', '4']],
    ['bytes', { limits: { bytes: 2 * 13 } }, ['0', '1']],
    ['fewer bytes than the first needs', { limits: { bytes: 12 } }, []],
    ['a timestamp, exclusive', { untilTimestamp: 3_000 }, ['0', '1']],
    [
      'an exact count although it may wait',
      { limits: { count: 5 }, waitSecs: 60 },
      ['0', '1', '2', '3', '4'],
    ],
  ])('stops at %s', async (_, stop, expected) => {
    const stream = await fiveRecords()
    expect(bodies(await all(await stream.readSession({ start: { from: { seqNum: 0 } }, stop })))).toEqual(
      expected,
    )
  })

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

  it('catches up at once on an empty stream', async () => {
    const stream = await basin.stream()
    const session = await stream.readSession()
    expect(await session.caughtUp()).toEqual({ seqNum: 0, timestamp: new Date(0) })
    expect(session.nextReadPosition()?.seqNum).toBe(0)
    await stream.append(strings('first'))
    expect(bodies(await take(session, 1))).toEqual(['first'])
    await session.cancel()
  })

  it('follows an append session record by record', async () => {
    const stream = await basin.stream()
    const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
    const appends = await stream.appendSession()
    for (let i = 0; i < 20; i++) {
      await (await appends.submit(strings(`${i}`))).ack()
      const [record] = await take(session, 1)
      expect([record!.seqNum, record!.body]).toEqual([i, `${i}`])
    }
    await appends.close()
    await session.cancel()
  })

  it('waits for the requested time, then ends', async () => {
    const stream = await fiveRecords()
    const session = await stream.readSession({ start: { from: { seqNum: 4 } }, stop: { waitSecs: 1 } })
    expect(bodies(await all(session))).toEqual(['4'])
    expect(session.nextReadPosition()?.seqNum).toBe(5)
  })

  it('ends at the tail if it has no bound and may not wait', async () => {
    const stream = await fiveRecords()
    const stop = { waitSecs: 0 }
    expect(bodies(await all(await stream.readSession({ start: { from: { seqNum: 3 } }, stop })))).toEqual([
      '3',
      '4',
    ])
    expect(await all(await stream.readSession({ start: { from: { seqNum: 5 } }, stop }))).toEqual([])
  })

  it.each([
    ['beyond the tail', { start: { from: { seqNum: 6 } } }],
    ['after the last timestamp', { start: { from: { timestamp: 5_001 } } }],
    ['the tail, bounded', { stop: { limits: { count: 1 } } }],
    [
      'beyond the tail, clamped and bounded',
      { start: { from: { seqNum: 6 }, clamp: true }, stop: { limits: { count: 1 } } },
    ],
  ])('rejects a start at %s with 416 and the tail', async (_, input) => {
    const stream = await fiveRecords()
    const reading = stream.readSession(input).then(all)
    await expect(reading).rejects.toBeInstanceOf(RangeNotSatisfiableError)
    await expect(reading).rejects.toMatchObject({
      status: 416,
      tail: { seqNum: 5, timestamp: new Date(5_000) },
    })
  })

  it('moves a start beyond the tail to the tail', async () => {
    const stream = await fiveRecords()
    const session = await stream.readSession({ start: { from: { seqNum: 500 }, clamp: true } })
    expect((await session.caughtUp()).seqNum).toBe(5)
    await stream.append(strings('next'))
    expect(bodies(await take(session, 1))).toEqual(['next'])
    await session.cancel()
  })

  it('rejects a missing stream', async () => {
    const reading = basin.handle('missing-stream').readSession().then(all)
    await expect(reading).rejects.toMatchObject({ status: 404, code: 'stream_not_found' })
  })

  it('delivers large batches whole', async () => {
    const stream = await basin.stream()
    const texts = [1_000_000, 500_000, 1, 1_048_568].map(longText)
    for (const text of texts) await stream.append(strings(text))
    const session = await stream.readSession({
      start: { from: { seqNum: 0 } },
      stop: { limits: { count: 4 } },
    })
    expect(bodies(await all(session)).map((body, i) => body === texts[i])).toEqual([true, true, true, true])
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

  it('releases everything when it is cancelled, aborted or abandoned', async () => {
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

  it('releases everything after many sessions', async () => {
    const stream = await fiveRecords()
    const sessions = await Promise.all(
      Array.from({ length: 40 }, () => stream.readSession({ start: { from: { seqNum: 0 } } })),
    )
    await Promise.all(sessions.map((session) => take(session, 5)))
    await until(() => openCounts(service).waitingReads === 40)
    await stream.append(strings('for all'))
    const last = await Promise.all(sessions.map((session) => take(session, 1)))
    expect(last.map((records) => bodies(records))).toEqual(sessions.map(() => ['for all']))
    await Promise.all(sessions.map((session) => session.cancel()))
    await untilIdle(service)
  })
})
