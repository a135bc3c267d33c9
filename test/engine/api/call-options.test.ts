import { afterEach, describe, expect, it } from 'vitest'
import type { CallOptions } from '../../../src/api/call-options.ts'
import type { Engine } from '../../../src/index.ts'
import { openEngine, type TestEngine, testStorage, wrapped } from '../../support/index.ts'

let engine: TestEngine
afterEach(() => engine.hw.close())

const ALL = { read: true, write: true }
const METRICS = { start: 0, end: 1 } as const
const RANGE = { ...METRICS, set: 'storage' } as const
const START = { start: { seqNum: 0, timestamp: 0 } }

/** Every asynchronous method that takes a signal. */
const CALLS: Readonly<Record<string, (hw: Engine, options: CallOptions) => Promise<unknown>>> = {
  createBasin: (hw, options) => hw.createBasin('new', {}, options),
  ensureBasin: (hw, options) => hw.ensureBasin('new', {}, options),
  listBasins: (hw, options) => hw.listBasins({}, options),
  listAllBasins: (hw, options) => hw.listAllBasins({}, options).next(),
  basinConfig: (hw, options) => hw.basin('basin').config(options),
  reconfigureBasin: (hw, options) => hw.basin('basin').reconfigure({}, options),
  deleteBasin: (hw, options) => hw.basin('basin').delete(options),
  issueAccessToken: (hw, options) => hw.issueAccessToken({ id: 'id', scope: { ops: ['read'] } }, options),
  listAccessTokens: (hw, options) => hw.listAccessTokens({}, options),
  listAllAccessTokens: (hw, options) => hw.listAllAccessTokens({}, options).next(),
  revokeAccessToken: (hw, options) => hw.revokeAccessToken('id', options),
  createRootToken: (hw, options) => hw.createRootToken(options),
  setRootToken: (hw, options) => hw.setRootToken('x'.repeat(16), options),
  'metrics of the account': (hw, options) => hw.metrics({ ...METRICS, set: 'active-basins' }, options),
  listLocations: (hw, options) => hw.listLocations(options),
  defaultLocation: (hw, options) => hw.defaultLocation(options),
  setDefaultLocation: (hw, options) => hw.setDefaultLocation('aws:us-east-1', options),
  checkStorage: (hw, options) => hw.checkStorage(options),
  counters: (hw, options) => hw.counters(options),
  createStream: (hw, options) => hw.basin('basin').createStream('new', {}, options),
  ensureStream: (hw, options) => hw.basin('basin').ensureStream('new', {}, options),
  restoreStream: (hw, options) => hw.restoreStream({ basin: 'basin', stream: 'new' }, START, options),
  listStreams: (hw, options) => hw.basin('basin').listStreams({}, options),
  listAllStreams: (hw, options) => hw.basin('basin').listAllStreams({}, options).next(),
  streamConfig: (hw, options) => hw.basin('basin').stream('stream').config(options),
  reconfigureStream: (hw, options) => hw.basin('basin').stream('stream').reconfigure({}, options),
  deleteStream: (hw, options) => hw.basin('basin').stream('stream').delete(options),
  'metrics of a basin': (hw, options) => hw.basin('basin').metrics(RANGE, options),
  append: (hw, options) => hw.basin('basin').stream('stream').append('a', options),
  fence: (hw, options) => hw.basin('basin').stream('stream').fence('token', options),
  trim: (hw, options) => hw.basin('basin').stream('stream').trim(0, options),
  appendSession: (hw, options) => hw.basin('basin').stream('stream').appendSession(options),
  appendAll: (hw, options) => hw.basin('basin').stream('stream').appendAll(['a'], options).next(),
  read: (hw, options) => hw.basin('basin').stream('stream').readBatch({ seqNum: 0 }, options),
  readSession: (hw, options) =>
    hw.basin('basin').stream('stream').follow({ seqNum: 0 }, options)[Symbol.asyncIterator]().next(),
  checkTail: (hw, options) => hw.basin('basin').stream('stream').checkTail(options),
  'metrics of a stream': (hw, options) => hw.basin('basin').stream('stream').metrics(RANGE, options),
}

describe('a signal that aborted', () => {
  it.each(Object.keys(CALLS))('rejects %s with its reason', async (name) => {
    engine = await openEngine()
    const reason = new Error('not wanted')
    await expect(CALLS[name]!(engine.hw, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  })
})

describe('a signal that aborts later', () => {
  it('ends a long poll', async () => {
    engine = await openEngine()
    const controller = new AbortController()
    const polling = engine.stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { signal: controller.signal })
    await engine.clock.settle()
    controller.abort(new Error('enough'))
    await expect(polling).rejects.toThrow('enough')
    expect(engine.hw.stats()).toMatchObject({ openReads: 0, openSessions: 0 })
  })

  it('ends the wait for an ack, but not the append', async () => {
    engine = await openEngine()
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
    engine = await openEngine()
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
    engine = await openEngine()
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
    engine = await openEngine({ storage })
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
    engine = await openEngine()
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
