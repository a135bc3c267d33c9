import { afterEach, describe, expect, it } from 'vitest'
import { fenceRecord } from '../../../src/index.ts'
import { bodies } from '../../support/index.ts'
import { aesOfNode, type EncryptedEngine, heldSuite, openEncrypted, outcome } from './support.ts'

let engine: EncryptedEngine
afterEach(() => engine.hw.close())

async function all(): Promise<string[]> {
  return bodies(await engine.with().readBatch({ seqNum: 0 }))
}

describe('appends that are not awaited', () => {
  it('keep their order, however long the cipher takes', async () => {
    const suite = heldSuite(aesOfNode)
    engine = await openEncrypted(suite)
    const stream = engine.with()
    const acks = ['a', 'b', 'c', 'd'].map((body) => stream.append(body))
    const fenced = stream.append(fenceRecord('t'))
    await engine.clock.settle()
    expect(suite.held).toBe(4)
    for (const index of [3, 1, 0]) suite.release(index)
    await engine.clock.settle()
    expect(engine.hw.stats()).toMatchObject({ pendingAppends: 3 })
    suite.release(0)
    expect((await Promise.all([...acks, fenced])).map(({ start }) => start.seqNum)).toEqual([0, 1, 2, 3, 4])
    expect(await all()).toEqual(['a', 'b', 'c', 'd', 't'])
    expect(engine.hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
  })

  it('continue after one that could not be sealed', async () => {
    const suite = heldSuite(aesOfNode)
    engine = await openEncrypted(suite)
    const [a, b] = [engine.with().append('a'), engine.with().append('b')]
    await engine.clock.settle()
    suite.release(1)
    suite.fail(0, new Error('out of entropy'))
    expect(await outcome(a)).toBe('500 other: records could not be sealed: the cipher failed')
    expect((await b).start.seqNum).toBe(0)
    expect(await all()).toEqual(['b'])
    expect(engine.hw.stats().appendBytesInFlight).toBe(0)
  })

  it('complete before the engine closes', async () => {
    const suite = heldSuite(aesOfNode)
    engine = await openEncrypted(suite)
    const appended = engine.with().append('a')
    await engine.clock.settle()
    let closed = false
    const closing = engine.hw.close().then(() => {
      closed = true
    })
    await engine.clock.settle()
    expect(closed).toBe(false)
    suite.release(0)
    expect((await appended).start.seqNum).toBe(0)
    await closing
    expect(engine.clock.pending).toBe(0)
  })

  it('are rejected a while after the engine begins to close if the cipher never settles', async () => {
    const suite = heldSuite(aesOfNode)
    engine = await openEncrypted(suite)
    const ends = ['a', 'b'].map((body) => outcome(engine.with().append(body)))
    const session = await engine.with().appendSession()
    ends.push(outcome((await session.submit('c')).ack()))
    await engine.clock.settle()
    let closed = false
    const closing = engine.hw.close().then(() => {
      closed = true
    })
    await engine.clock.settle()
    suite.release(0)
    await engine.clock.advance(4_999)
    expect(closed).toBe(false)
    await engine.clock.advance(1)
    await closing
    const unavailable = '503 closed: headwater is closed'
    expect(await Promise.all(ends)).toEqual(['ok', unavailable, unavailable])
    expect(engine.hw.stats()).toMatchObject({ pendingAppends: 0, appendBytesInFlight: 0 })
    expect(engine.clock.pending).toBe(0)
    // Too late.
    suite.release(0)
    await engine.clock.settle()
    expect(await Promise.all(ends)).toEqual(['ok', unavailable, unavailable])
  })
})
