import {
  AppendInput,
  AppendRecord,
  FencingTokenMismatchError,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { testClock } from '../support/index.ts'
import { all, bodies, strings, stringWhen } from './records.ts'
import { basinOfFile, FETCH, S2S, serviceOfFile } from './support.ts'

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
})

describe.each([FETCH, S2S])('commands in sessions by $name', async (transport) => {
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
})
