import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { fenceRecord, HeadwaterError, open, trimRecord } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { any, first, METHODS, RANGE, type Target } from './methods.ts'

let target: Target
beforeEach(async () => {
  const hw = await open({ storage: memory(), usage: usageMetrics() })
  const basin = hw.basin('basin')
  target = { hw, basin, stream: basin.stream('stream') }
  await target.stream.append('first')
})
afterEach(() => target.hw.close())

/** A schema that validates asynchronously. */
const slow = {
  '~standard': { version: 1, vendor: 'test', validate: async (value: unknown) => ({ value }) },
} as const

/** Not an object with members of the API, wherever one is expected. */
const OBJECTS: Record<string, unknown> = {
  'an unknown member': { nonsense: 1 },
  'an inherited name': { constructor: 1 },
  null: null,
  'a number': 5,
  'a Date': new Date(),
  'a Map': new Map([['body', 'x']]),
  'a class instance': new (class Order {
    id = 'a'
  })(),
}

async function failure(call: () => unknown): Promise<HeadwaterError> {
  try {
    await call()
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
  throw new Error('the call succeeded')
}

it.each(Object.entries(METHODS))(
  '%s rejects all but objects with its members as `invalid`',
  async (_, call) => {
    for (const [kind, object] of Object.entries(OBJECTS)) {
      expect([kind, (await failure(() => call(target, any(object)))).code]).toEqual([kind, 'invalid'])
    }
    // Nothing was created.
    expect((await target.basin.listStreams()).items.map(({ name }) => name)).toEqual(['stream'])
  },
)

describe('a member of a wrong type', () => {
  it.each<[string, (target: Target) => unknown]>([
    ['matchSeqNum', ({ stream }) => stream.append('a', { matchSeqNum: any('0') })],
    ['matchSeqNum', ({ stream }) => stream.append('a', { matchSeqNum: Number.NaN })],
    ['fencingToken', ({ stream }) => stream.append('a', { fencingToken: any(5) })],
    ['fencingToken', ({ stream }) => stream.append('a', { fencingToken: '\ud800' })],
    ['fencingToken', ({ stream }) => stream.fence('\ud800')],
    ['seqNum', ({ stream }) => stream.trim(any('5'))],
    ['signal', ({ stream }) => stream.append('a', { signal: any(new AbortController()) })],
    ['records', ({ stream }) => stream.append('\udc00')],
    ['records', ({ stream }) => stream.append({ headers: [['n\ud800', '']] })],
    ['records', ({ stream }) => stream.append({ headers: [['n', 'é\ud800']] })],
    ['body', ({ stream }) => stream.append({ body: any(5) })],
    ['headers', ({ stream }) => stream.append({ headers: [['a', any(5)]] })],
    ['headers', ({ stream }) => stream.append({ headers: new Array(1) })],
    ['signal', ({ stream }) => stream.json(slow).append(1, { signal: any(5) })],
    ['records', ({ stream }) => stream.append({})],
    ['headers', ({ stream }) => stream.append({ headers: any({ a: 'b' }) })],
    ['timestamp', ({ stream }) => stream.append({ body: '', timestamp: any('2025-01-01') })],
    ['timestamp', ({ stream }) => stream.append({ body: '', timestamp: new Date('never') })],
    ['tailOffset', ({ stream }) => stream.readBatch({ tailOffset: Number.POSITIVE_INFINITY })],
    ['count', ({ stream }) => stream.readBatch({ seqNum: 0, count: any('5') })],
    ['source', ({ stream }) => first(stream.appendAll(any(5)))],
    ['source', ({ stream }) => first(stream.json().appendAll(any(undefined)))],
    ['clamp', ({ stream }) => stream.readBatch({ seqNum: 0, clamp: any('true') })],
    ['waitMs', ({ stream }) => stream.readBatch({ seqNum: 0, waitMs: any('1') })],
    ['as', ({ stream }) => stream.readBatch({ seqNum: 0 }, { as: any('text') })],
    ['recordsMax', ({ stream }) => stream.producer({ recordsMax: any('5') })],
    ['lingerMs', ({ stream }) => stream.producer({ lingerMs: any('5') })],
    ['limit', ({ hw }) => hw.listBasins({ limit: Number.NaN })],
    ['prefix', ({ basin }) => basin.listStreams({ prefix: any(5) })],
    ['prefix', ({ basin }) => basin.listStreams({ prefix: '\ud800' })],
    ['autoCreate', ({ hw }) => hw.basin('a', { autoCreate: any('false') })],
    ['basin', ({ hw }) => hw.basin(any(5))],
    ['basin', ({ hw }) => hw.createBasin(any(undefined))],
    ['stream', ({ basin }) => basin.stream(any(undefined))],
    ['stream', ({ basin }) => basin.createStream('\ud800')],
    ['stream', ({ basin }) => basin.createStream(any(Symbol('a')))],
    ['requestToken', ({ hw }) => hw.createBasin('a', {}, { requestToken: '\ud800' })],
    ['nonsense', ({ hw }) => hw.createBasin('a', { defaultStreamConfig: any({ nonsense: 1 }) })],
    ['storageClass', ({ basin }) => basin.createStream('a', { storageClass: any(1) })],
    ['timestamping', ({ basin }) => basin.createStream('a', { timestamping: any('arrival') })],
    ['timestamping.modus', ({ basin }) => basin.createStream('a', { timestamping: any({ modus: 'x' }) })],
    ['retentionPolicy', ({ basin }) => basin.createStream('a', { retentionPolicy: any([]) })],
    [
      'retentionPolicy.age',
      ({ basin }) => basin.createStream('a', { retentionPolicy: any({ ageSeconds: 1, age: 1 }) }),
    ],
    ['scope.ops', ({ hw }) => hw.issueAccessToken({ id: 'a', scope: { ops: any('read') } })],
    [
      'scope.streams.name',
      ({ hw }) => hw.issueAccessToken({ id: 'a', scope: { streams: any({ name: 'a' }) } }),
    ],
    ['id', ({ hw }) => hw.revokeAccessToken('\ud800')],
    ['tokenId', ({ hw }) => hw.revokeAccessToken(any(5))],
    ['set', ({ hw }) => hw.metrics({ set: any(5), ...RANGE })],
    ['location', ({ hw }) => hw.setDefaultLocation(any(5))],
    ['token', ({ hw }) => hw.setRootToken(any(5))],
  ])('is `invalid`, and named: %s (%#)', async (field, call) => {
    expect(await failure(() => call(target))).toMatchObject({ code: 'invalid', field })
    expect((await target.stream.checkTail()).seqNum).toBe(1)
  })

  it('is `invalid` in a command record', async () => {
    for (const call of [() => fenceRecord('\ud800'), () => trimRecord(any('1'))]) {
      expect((await failure(call)).code).toBe('invalid')
    }
  })
})

describe('the message', () => {
  const JSON_WAY = '; to append JSON values, use `stream.json()`'
  it.each<[string, (target: Target) => unknown]>([
    [
      'unknown member `matchSeqnum`; expected `fencingToken`, `matchSeqNum`, `producer`, `streamSeq`, `signal`',
      ({ stream }) => stream.append('a', any({ matchSeqnum: 1 })),
    ],
    [
      'unknown member `wait`; expected `seqNum`, `timestamp`, `tailOffset`, `clamp`, `count`, `bytes`, `until`, `waitMs`',
      ({ stream }) => stream.readBatch(any({ wait: 1 })),
    ],
    ['unknown member `limits`; expected `signal`', ({ hw }) => hw.listLocations(any({ limits: 1 }))],
    [
      `unknown member \`id\`; expected \`body\`, \`headers\`, \`timestamp\`${JSON_WAY}`,
      ({ stream }) => stream.append(any({ id: 'a', total: 1 })),
    ],
    [
      `a record must have \`body\`, \`headers\` or \`timestamp\`${JSON_WAY}`,
      ({ stream }) => stream.append(any(new Map())),
    ],
    [
      `a record must be a string, a Uint8Array or an object${JSON_WAY}`,
      ({ stream }) => stream.append(any(1)),
    ],
    ['`options` must be a plain object', ({ stream }) => stream.append('a', any(null))],
  ])('%s', async (message, call) => {
    expect((await failure(() => call(target))).message).toBe(message)
  })

  it('truncates a long name', async () => {
    const { message } = await failure(() => target.stream.append('a', any({ ['x'.repeat(100_000)]: 1 })))
    expect(message.length).toBeLessThan(300)
  })
})

describe('record input', () => {
  class Reading {
    get body(): string {
      return 'from a getter'
    }
  }

  it.each<[string, unknown]>([
    ['an object without a prototype', Object.assign(Object.create(null), { body: 'x' })],
    ['a class instance with a body', new Reading()],
    ['a Buffer', Buffer.from('x')],
    ['members that are undefined', { body: 'x', headers: undefined, timestamp: undefined }],
  ])('%s', async (_, record) => {
    expect((await target.stream.append(any(record))).end.seqNum).toBe(2)
  })
})
