import { AppendInput, AppendRecord, MAX_APPEND_RECORDS } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { bodies, longText, strings, stringWhen } from './records.ts'
import { basinOfFile, FETCH, serviceOfFile, TRANSPORTS, untilIdle } from './support.ts'

const service = await serviceOfFile()
const { server } = service

describe('append', async () => {
  const basin = await basinOfFile(server.url, FETCH)

  it('acknowledges the append with its tail', async () => {
    const stream = await basin.stream()
    const ack = await stream.append(strings('a', 'b', 'c'))
    expect([ack.start.seqNum, ack.end.seqNum, ack.tail.seqNum]).toEqual([0, 3, 3])
    expect(ack.end.timestamp.getTime()).toBe(ack.tail.timestamp.getTime())
    expect(await stream.checkTail()).toEqual({ tail: ack.tail })
    const second = await stream.append(strings('d'))
    expect([second.start.seqNum, second.end.seqNum]).toEqual([3, 4])
  })

  it('stores strings, headers and empty bodies', async () => {
    const stream = await basin.stream()
    const body = 'naïve 𝒻𝓊𝓃 \u2028 "quoted" \u0000 line\r\nbreak'
    const headers = [
      ['content-type', 'text/plain'],
      ['größe', '☃'],
      ['same', '1'],
      ['same', ''],
    ] as const
    await stream.append(
      AppendInput.create([AppendRecord.string({ body, headers }), AppendRecord.string({ body: '' })]),
    )
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(records.map(({ body, headers }) => ({ body, headers }))).toEqual([
      { body, headers },
      { body: '', headers: [] },
    ])
  })

  it('stores bytes and strings in one batch', async () => {
    const stream = await basin.stream()
    const body = Uint8Array.from({ length: 256 }, (_, i) => i)
    const headers = [[Uint8Array.of(0xff, 0), Uint8Array.of()] as const]
    const ack = await stream.append(
      AppendInput.create([AppendRecord.bytes({ body, headers }), AppendRecord.string({ body: 'text' })]),
    )
    expect(ack.end.seqNum).toBe(2)
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } }, { as: 'bytes' })
    expect(records.map((record) => [record.body, record.headers])).toEqual([
      [body, headers],
      [new TextEncoder().encode('text'), []],
    ])
  })

  it('accepts the largest batches', { tags: ['slow'] }, async () => {
    const stream = await basin.stream()
    const many = await stream.append(strings(...Array.from({ length: MAX_APPEND_RECORDS }, (_, i) => `${i}`)))
    expect(many.end.seqNum).toBe(MAX_APPEND_RECORDS)
    const text = await stream.append(strings(longText(AppendRecord.maxBodyBytes())))
    expect(text.end.seqNum).toBe(MAX_APPEND_RECORDS + 1)
    const body = new Uint8Array(AppendRecord.maxBodyBytes()).fill(0xfe)
    await stream.append(AppendInput.create([AppendRecord.bytes({ body })]))
    const read = await stream.read({ start: { from: { tailOffset: 1 } } }, { as: 'bytes' })
    expect(Buffer.compare(read.records[0]!.body, body)).toBe(0)
  })
})

describe.each(TRANSPORTS)('append session by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  it('acknowledges pipelined batches in order', async () => {
    const stream = await basin.stream()
    const session = await stream.appendSession()
    const tickets = []
    for (let i = 0; i < 20; i++) tickets.push(await session.submit(strings(`${i} a`, `${i} b`)))
    const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
    expect(acks.map(({ start, end }) => [start.seqNum, end.seqNum])).toEqual(
      Array.from({ length: 20 }, (_, i) => [2 * i, 2 * i + 2]),
    )
    expect(session.lastAckedPosition()?.end.seqNum).toBe(40)
    await session.close()
    expect(session.failureCause()).toBeUndefined()
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(Array.from({ length: 40 }, (_, i) => `${i >> 1} ${i % 2 ? 'b' : 'a'}`))
  })

  it('transfers more than fits in flight, compressible or not', { tags: ['slow'] }, async () => {
    const stream = await basin.stream()
    const session = await stream.appendSession({ maxInflightBytes: 1024 * 1024, maxInflightBatches: 3 })
    const noise = new Uint8Array(300_000)
    let state = 1
    for (let i = 0; i < noise.length; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
      noise[i] = state >>> 16
    }
    const tickets = []
    for (let i = 0; i < 12; i++) {
      const record =
        i % 2 === 0
          ? AppendRecord.bytes({ body: noise.subarray(i) })
          : AppendRecord.string({ body: longText(300_000 + i) })
      tickets.push(await session.submit(AppendInput.create([record])))
    }
    for (const ticket of tickets) await ticket.ack()
    await session.close()
    expect((await stream.checkTail()).tail.seqNum).toBe(12)
    const read = await stream.readSession(
      { start: { from: { seqNum: 0 } }, stop: { limits: { count: 12 } } },
      { as: 'bytes' },
    )
    let i = 0
    for await (const { body } of read) {
      const expected = i % 2 === 0 ? noise.subarray(i) : new TextEncoder().encode(longText(300_000 + i))
      expect(Buffer.compare(body, expected)).toBe(0)
      i++
    }
    expect(i).toBe(12)
  })

  it('ends at the first failure: earlier batches are stored, later ones are not', async () => {
    const stream = await basin.stream()
    const session = await stream.appendSession()
    const tickets = []
    tickets.push(await session.submit(stringWhen('first', { matchSeqNum: 0 })))
    tickets.push(await session.submit(stringWhen('second', { matchSeqNum: 1 })))
    tickets.push(await session.submit(stringWhen('wrong', { matchSeqNum: 7 })))
    tickets.push(await session.submit(strings('behind')))
    const outcomes = await Promise.allSettled(tickets.map((ticket) => ticket.ack()))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected'])
    expect(session.failureCause()).toMatchObject({
      name: 'SeqNumMismatchError',
      status: 412,
      expectedSeqNum: 2,
    })
    await expect(session.submit(strings('later'))).rejects.toMatchObject({ status: 412 })
    await expect(session.close()).rejects.toMatchObject({ status: 412 })
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(bodies(records)).toEqual(['first', 'second'])
  })

  it('releases everything when it or its acks are cancelled', async () => {
    await untilIdle(service)
    const stream = await basin.stream()
    const abort = new AbortController()
    const aborted = await stream.appendSession({}, { signal: abort.signal })
    await (await aborted.submit(strings('a'))).ack()
    const cancelled = await stream.appendSession()
    await (await cancelled.submit(strings('b'))).ack()
    abort.abort()
    await cancelled.acks().cancel()
    await untilIdle(service)
    expect((await stream.checkTail()).tail.seqNum).toBe(2)
    // A session that the client retries after the abort is aborted as well.
    await aborted.close().catch(() => {})
  })
})
