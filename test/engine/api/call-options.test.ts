import { describe, expect, it } from 'vitest'
import type { CallOptions } from '../../../src/api/call-options.ts'
import { openEngine, testStorage, wrapped } from '../../support/index.ts'
import { any, METHODS } from './methods.ts'

const ALL = { read: true, write: true }
/** Every asynchronous method that takes a signal. */
const CALLS = Object.entries(METHODS).filter(
  ([name]) => name.endsWith(', options') && !/^(stream\.producer|basin\.stream|hw\.basin),/.test(name),
)

describe('a signal that aborted', () => {
  it.each(CALLS)('rejects %s with its reason', async (_, call) => {
    const engine = await openEngine()
    const { hw, stream } = engine
    const reason = new Error('not wanted')
    const options = any({ signal: AbortSignal.abort(reason) })
    await expect(call({ hw, stream, basin: hw.basin('basin') }, options)).rejects.toBe(reason)
  })
})

describe('a signal that aborts later', () => {
  it('ends the wait for an ack, but not the append', async () => {
    const engine = await openEngine()
    const session = await engine.stream.appendSession()
    const ticket = await session.submit('a')
    await expect(ticket.ack({ signal: AbortSignal.abort(new Error('enough')) })).rejects.toThrow('enough')
    await session.close()
    expect((await engine.stream.checkTail()).seqNum).toBe(1)
  })
})

describe('a call whose signal aborts', () => {
  const ABORTED = { signal: AbortSignal.abort(new Error('enough')) }

  it('changes nothing while the token of its caller is being looked up', async () => {
    const engine = await openEngine()
    const { hw, stream } = engine
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, opGroups: { basin: ALL, stream: ALL } }
    const holder = hw.as(await hw.issueAccessToken({ id: 'holder', scope })).basin('basin')
    const controller = new AbortController()
    const { signal } = controller
    const calls = [
      holder.stream('stream').delete({ signal }),
      holder.stream('stream').append('a', { signal }),
    ]
    controller.abort(new Error('enough'))
    for (const call of calls) await expect(call).rejects.toThrow('enough')
    await engine.clock.settle()
    expect(await stream.checkTail()).toMatchObject({ seqNum: 0 })
    expect(hw.stats()).toMatchObject({ waitingAppendBytes: 0, appendBytesInFlight: 0 })
  })

  it('submits nothing to a session or a producer', async () => {
    const engine = await openEngine()
    const session = await engine.stream.appendSession()
    await expect(session.submit('a', ABORTED)).rejects.toThrow('enough')
    await session.submit('b')
    await session.close()
    const producer = engine.stream.producer()
    await expect(producer.submit('c', ABORTED)).rejects.toThrow('enough')
    await producer.close()
    expect((await engine.stream.checkTail()).seqNum).toBe(1)
  })

  it('ends appendAll while its session is being opened', async () => {
    let isHeld = false
    const storage = wrapped(testStorage(), {}, (session) => ({
      get: (collection, key) =>
        isHeld && collection === 'streams' ? new Promise(() => {}) : session.get(collection, key),
    }))
    const engine = await openEngine({ storage })
    isHeld = true
    const acks = engine.hw.basin('basin').stream('other').appendAll(['a'])
    const first = acks.next()
    await engine.clock.settle()
    await acks.return()
    expect(await first).toEqual({ done: true, value: undefined })
    isHeld = false
  })
})

describe('asynchronous methods', () => {
  it('reject and never throw, even for options of another type', async () => {
    const engine = await openEngine()
    const { hw, stream } = engine
    const none = null as unknown as CallOptions
    const calls = [
      () => hw.createBasin('b', {}, none),
      () => hw.listBasins({}, none),
      () => hw.basin('basin').listStreams({}, none),
      () => stream.checkTail(none),
      () => stream.append('a', none),
      () => stream.trim(-1),
      () => stream.fence('x'.repeat(37)),
    ]
    for (const call of calls) {
      const called = call()
      await expect(called).rejects.toBeDefined()
    }
  })
})
