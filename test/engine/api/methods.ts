import type { Basin, Engine, Stream } from '../../../src/index.ts'

/** What plain JavaScript passes. */
export type Any = never
export const any = (value: unknown) => value as Any

export interface Target {
  readonly hw: Engine
  readonly basin: Basin
  readonly stream: Stream
}

export const RANGE = { start: 0, end: 1 }
const TOKEN = { id: 'token', scope: { ops: ['read'] } }

export async function first<Item>(items: AsyncIterable<Item>): Promise<Item | undefined> {
  for await (const item of items) return item
  return undefined
}

/** Every method that takes an object, and the place of that object. */
export const METHODS: Record<string, (target: Target, object: Any) => unknown> = {
  'stream.append, record': ({ stream }, object) => stream.append(object),
  'stream.append, batch': ({ stream }, object) => stream.append(['a', object]),
  'stream.append, options': ({ stream }, object) => stream.append('a', object),
  'stream.fence, options': ({ stream }, object) => stream.fence('a', object),
  'stream.trim, options': ({ stream }, object) => stream.trim(0, object),
  'stream.appendSession, options': ({ stream }, object) => stream.appendSession(object),
  'session.submit, record': async ({ stream }, object) => (await stream.appendSession()).submit(object),
  'session.submit, options': async ({ stream }, object) => (await stream.appendSession()).submit('a', object),
  'ticket.ack, options': async ({ stream }, object) => {
    const session = await stream.appendSession()
    return (await session.submit('a')).ack(object)
  },
  'stream.appendAll, options': ({ stream }, object) => first(stream.appendAll(['a'], object)),
  'stream.appendAll, batch': ({ stream }, object) => first(stream.appendAll([object])),
  'stream.producer, options': ({ stream }, object) => stream.producer(object),
  'producer.submit, record': ({ stream }, object) => stream.producer().submit(object),
  'producer.submit, options': ({ stream }, object) => stream.producer().submit('a', object),
  'producer.flush, options': ({ stream }, object) => stream.producer().flush(object),
  'stream.readBatch, query': ({ stream }, object) => stream.readBatch(object),
  'stream.readBatch, options': ({ stream }, object) => stream.readBatch({ seqNum: 0 }, object),
  'stream.follow, query': ({ stream }, object) => first(stream.follow(object)),
  'stream.follow, options': ({ stream }, object) => first(stream.follow({ seqNum: 0 }, object)),
  'json.readBatch, query': ({ stream }, object) => stream.json().readBatch(object),
  'stream.checkTail, options': ({ stream }, object) => stream.checkTail(object),
  'stream.metrics, query': ({ stream }, object) => stream.metrics(object),
  'stream.metrics, options': ({ stream }, object) => stream.metrics({ set: 'storage', ...RANGE }, object),
  'basin.stream, options': ({ basin }, object) => basin.stream('a', object),
  'basin.stream, config': ({ basin }, config) => basin.stream('a', { config }),
  'basin.createStream, config': ({ basin }, object) => basin.createStream('a', object),
  'basin.createStream, options': ({ basin }, object) => basin.createStream('a', {}, object),
  'basin.ensureStream, config': ({ basin }, object) => basin.ensureStream('a', object),
  'basin.ensureStream, options': ({ basin }, object) => basin.ensureStream('a', {}, object),
  'restoreStream, stream': ({ hw }, object) => hw.restoreStream({ basin: 'basin', stream: 'a' }, object),
  'restoreStream, start': ({ hw }, start) => hw.restoreStream({ basin: 'basin', stream: 'a' }, { start }),
  'restoreStream, options': ({ hw }, object) =>
    hw.restoreStream({ basin: 'basin', stream: 'a' }, { start: { seqNum: 0, timestamp: 0 } }, object),
  'basin.listStreams, query': ({ basin }, object) => basin.listStreams(object),
  'basin.listStreams, options': ({ basin }, object) => basin.listStreams({}, object),
  'basin.listAllStreams, query': ({ basin }, object) => first(basin.listAllStreams(object)),
  'basin.listAllStreams, options': ({ basin }, object) => first(basin.listAllStreams({}, object)),
  'basin.streamConfig, options': ({ basin }, object) => basin.stream('stream').config(object),
  'basin.reconfigureStream, change': ({ basin }, object) => basin.stream('stream').reconfigure(object),
  'basin.reconfigureStream, options': ({ basin }, object) => basin.stream('stream').reconfigure({}, object),
  'basin.deleteStream, options': ({ basin }, object) => basin.stream('stream').delete(object),
  'basin.metrics, query': ({ basin }, object) => basin.metrics(object),
  'basin.metrics, options': ({ basin }, object) => basin.metrics({ set: 'storage', ...RANGE }, object),
  'hw.basin, options': ({ hw }, object) => hw.basin('a', object),
  'hw.createBasin, config': ({ hw }, object) => hw.createBasin('a', object),
  'hw.createBasin, options': ({ hw }, object) => hw.createBasin('a', {}, object),
  'hw.ensureBasin, config': ({ hw }, object) => hw.ensureBasin('a', object),
  'hw.ensureBasin, options': ({ hw }, object) => hw.ensureBasin('a', {}, object),
  'hw.listBasins, query': ({ hw }, object) => hw.listBasins(object),
  'hw.listBasins, options': ({ hw }, object) => hw.listBasins({}, object),
  'hw.listAllBasins, query': ({ hw }, object) => first(hw.listAllBasins(object)),
  'hw.listAllBasins, options': ({ hw }, object) => first(hw.listAllBasins({}, object)),
  'hw.basinConfig, options': ({ hw }, object) => hw.basin('basin').config(object),
  'hw.reconfigureBasin, change': ({ hw }, object) => hw.basin('basin').reconfigure(object),
  'hw.reconfigureBasin, options': ({ hw }, object) => hw.basin('basin').reconfigure({}, object),
  'hw.deleteBasin, options': ({ hw }, object) => hw.basin('basin').delete(object),
  'hw.issueAccessToken, token': ({ hw }, object) => hw.issueAccessToken(object),
  'hw.issueAccessToken, scope': ({ hw }, scope) => hw.issueAccessToken({ id: 'a', scope }),
  'hw.issueAccessToken, options': ({ hw }, object) => hw.issueAccessToken(any(TOKEN), object),
  'hw.listAccessTokens, query': ({ hw }, object) => hw.listAccessTokens(object),
  'hw.listAccessTokens, options': ({ hw }, object) => hw.listAccessTokens({}, object),
  'hw.listAllAccessTokens, query': ({ hw }, object) => first(hw.listAllAccessTokens(object)),
  'hw.listAllAccessTokens, options': ({ hw }, object) => first(hw.listAllAccessTokens({}, object)),
  'hw.revokeAccessToken, options': ({ hw }, object) => hw.revokeAccessToken('token', object),
  'hw.createRootToken, options': ({ hw }, object) => hw.createRootToken(object),
  'hw.setRootToken, options': ({ hw }, object) => hw.setRootToken('x'.repeat(20), object),
  'hw.metrics, query': ({ hw }, object) => hw.metrics(object),
  'hw.metrics, options': ({ hw }, object) => hw.metrics({ set: 'active-basins', ...RANGE }, object),
  'hw.listLocations, options': ({ hw }, object) => hw.listLocations(object),
  'hw.defaultLocation, options': ({ hw }, object) => hw.defaultLocation(object),
  'hw.setDefaultLocation, options': ({ hw }, object) => hw.setDefaultLocation('aws:us-east-1', object),
  'hw.checkStorage, options': ({ hw }, object) => hw.checkStorage(object),
  'hw.counters, options': ({ hw }, object) => hw.counters(object),
}
