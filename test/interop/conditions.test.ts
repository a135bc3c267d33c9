import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { testClock } from '../support/index.ts'
import { all, bodies, strings, stringWhen, take } from './records.ts'
import { basinOfFile, FETCH, serviceOfFile, TRANSPORTS } from './support.ts'

const clock = testClock()
const { server } = await serviceOfFile({ clock })

const fence = (token: string, conditions = {}) => AppendInput.create([AppendRecord.fence(token)], conditions)
const trim = (seqNum: number) => AppendInput.create([AppendRecord.trim(seqNum)])

describe('append conditions', async () => {
  const basin = await basinOfFile(server.url, FETCH)

  it('match the sequence number, including 0', async () => {
    const stream = await basin.stream()
    expect((await stream.append(stringWhen('a', { matchSeqNum: 0 }))).end.seqNum).toBe(1)
    const retry = stream.append(stringWhen('b', { matchSeqNum: 0 }))
    await expect(retry).rejects.toBeInstanceOf(SeqNumMismatchError)
    await expect(retry).rejects.toMatchObject({ status: 412, expectedSeqNum: 1 })
    expect((await stream.append(stringWhen('b', { matchSeqNum: 1 }))).end.seqNum).toBe(2)
  })

  it('match the fencing token', async () => {
    const stream = await basin.stream()
    await stream.append(fence('alice', { fencingToken: '' }))
    await stream.append(stringWhen('by alice', { fencingToken: 'alice' }))
    const byBob = stream.append(stringWhen('by bob', { fencingToken: 'bob' }))
    await expect(byBob).rejects.toBeInstanceOf(FencingTokenMismatchError)
    await expect(byBob).rejects.toMatchObject({ status: 412, expectedFencingToken: 'alice' })
    await stream.append(strings('by one who does not ask'))
    await stream.append(fence('', { fencingToken: 'alice' }))
    await expect(stream.append(stringWhen('late', { fencingToken: 'alice' }))).rejects.toMatchObject({
      expectedFencingToken: '',
    })
  })

  it('report the token when both fail', async () => {
    const stream = await basin.stream('a')
    const both = stream.append(stringWhen('b', { fencingToken: 'x', matchSeqNum: 9 }))
    await expect(both).rejects.toBeInstanceOf(FencingTokenMismatchError)
  })

  it('apply to bytes', async () => {
    const stream = await basin.stream('a')
    const record = AppendRecord.bytes({ body: Uint8Array.of(1) })
    await expect(stream.append(AppendInput.create([record], { matchSeqNum: 0 }))).rejects.toMatchObject({
      status: 412,
      expectedSeqNum: 1,
    })
  })

  it('accept a token of up to 36 bytes', async () => {
    const stream = await basin.stream()
    const token = 'é'.repeat(18)
    await stream.append(fence(token))
    await stream.append(stringWhen('x', { fencingToken: token }))
    // The client itself would reject it.
    const tooLong = { ...strings('x'), fencingToken: `${token}x` }
    await expect(stream.append(tooLong)).rejects.toMatchObject({ status: 400, code: 'bad_json' })
    expect((await stream.checkTail()).tail.seqNum).toBe(2)
  })
})

describe.each(TRANSPORTS)('commands in sessions by $name', async (transport) => {
  const basin = await basinOfFile(server.url, transport)

  it('fence a writer with an open session', async () => {
    const stream = await basin.stream()
    await stream.append(fence('first'))
    const session = await stream.appendSession()
    await (await session.submit(stringWhen('1', { fencingToken: 'first' }))).ack()
    await stream.append(fence('second', { fencingToken: 'first' }))
    const ticket = await session.submit(stringWhen('2', { fencingToken: 'first' }))
    await expect(ticket.ack()).rejects.toBeInstanceOf(FencingTokenMismatchError)
    expect(session.failureCause()).toMatchObject({ status: 412, expectedFencingToken: 'second' })
    await expect(session.close()).rejects.toBeInstanceOf(FencingTokenMismatchError)
  })

  it('fence and continue in the same session', async () => {
    const stream = await basin.stream()
    const session = await stream.appendSession()
    const tickets = [
      await session.submit(fence('mine', { matchSeqNum: 0 })),
      await session.submit(stringWhen('x', { fencingToken: 'mine', matchSeqNum: 1 })),
      await session.submit(fence('', { fencingToken: 'mine' })),
    ]
    for (const ticket of tickets) await ticket.ack()
    await session.close()
    const records = await all(
      await stream.readSession({ start: { from: { seqNum: 0 } }, stop: { limits: { count: 3 } } }),
    )
    expect(records.map(({ body, headers }) => [body, headers])).toEqual([
      ['mine', [['', 'fence']]],
      ['x', []],
      ['', [['', 'fence']]],
    ])
  })

  it('trim for readers that open after the grace period', async () => {
    const stream = await basin.stream('a', 'b', 'c', 'd')
    const ack = await stream.append(trim(2))
    const start = { from: { seqNum: 0 } }
    expect((await stream.read({ start })).records).toHaveLength(5)
    await clock.advance('10s')
    const unary = await stream.read({ start })
    expect(unary.records.map(({ seqNum }) => seqNum)).toEqual([2, 3, 4])
    const session = await stream.readSession({
      start,
      stop: { limits: { count: 3 } },
      ignoreCommandRecords: true,
    })
    expect(bodies(await all(session))).toEqual(['c', 'd'])
    expect((await stream.checkTail()).tail).toEqual(ack.tail)
  })

  it('end a stream for its followers: trim everything, then fence', async () => {
    const stream = await basin.stream('a', 'b')
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect(bodies(await take(follower, 2))).toEqual(['a', 'b'])
    await follower.caughtUp()
    await stream.append(
      AppendInput.create([AppendRecord.trim(Number.MAX_SAFE_INTEGER), AppendRecord.fence('closed')]),
    )
    const last = await take(follower, 2)
    expect(last.map(({ headers }) => headers[0]![1])).toEqual(['trim', 'fence'])
    await follower.cancel()
    await expect(stream.append(stringWhen('late', { fencingToken: '' }))).rejects.toMatchObject({
      expectedFencingToken: 'closed',
    })
  })

  it('trim everything and continue the sequence numbers', async () => {
    const stream = await basin.stream('a', 'b')
    await stream.append(trim(100))
    await clock.advance('10s')
    expect(await stream.read({ start: { from: { seqNum: 0 } } })).toMatchObject({ records: [] })
    const follower = await stream.readSession({ start: { from: { seqNum: 0 } } })
    expect((await follower.caughtUp()).seqNum).toBe(3)
    expect((await stream.append(strings('next'))).start.seqNum).toBe(3)
    expect(bodies(await take(follower, 1))).toEqual(['next'])
    await follower.cancel()
  })
})
