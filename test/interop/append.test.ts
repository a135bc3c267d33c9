import { AppendInput, AppendRecord, MAX_APPEND_RECORDS } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { bodies, longText, strings, stringWhen } from './records.ts'
import { basinOfFile, basinOn, FETCH, serviceOfFile, TRANSPORTS, untilIdle } from './support.ts'

const service = await serviceOfFile()
const { server } = service

it('the largest batches are stored', { tags: ['slow'] }, async () => {
  const basin = await basinOn(server.url, FETCH)
  const stream = await basin.stream()
  const many = await stream.append(strings(...Array.from({ length: MAX_APPEND_RECORDS }, (_, i) => `${i}`)))
  expect(many.end.seqNum).toBe(MAX_APPEND_RECORDS)
  const text = await stream.append(strings(longText(AppendRecord.maxBodyBytes())))
  expect(text.end.seqNum).toBe(MAX_APPEND_RECORDS + 1)
  const body = new Uint8Array(AppendRecord.maxBodyBytes()).fill(0xfe)
  await stream.append(AppendInput.create([AppendRecord.bytes({ body })]))
  const read = await stream.read({ start: { from: { tailOffset: 1 } } }, { as: 'bytes' })
  expect(Buffer.compare(read.records[0]!.body, body)).toBe(0)
  await basin.close()
})

it('conditions that fail and reads beyond the tail have the errors of the client', async () => {
  const basin = await basinOn(server.url, FETCH)
  const stream = await basin.stream('a')
  await stream.append(AppendInput.create([AppendRecord.fence('owner')]))
  await expect(stream.append(stringWhen('b', { fencingToken: 'other' }))).rejects.toMatchObject({
    name: 'FencingTokenMismatchError',
    expectedFencingToken: 'owner',
  })
  await expect(stream.append(stringWhen('b', { matchSeqNum: 0 }))).rejects.toMatchObject({
    name: 'SeqNumMismatchError',
    expectedSeqNum: 2,
  })
  await expect(stream.read({ start: { from: { seqNum: 9 } } })).rejects.toMatchObject({
    name: 'RangeNotSatisfiableError',
    tail: { seqNum: 2 },
  })
  await basin.close()
})

describe.each(TRANSPORTS)('append session by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

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
