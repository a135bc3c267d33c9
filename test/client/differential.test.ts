import fc from 'fast-check'
import { expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import type { Headwater } from '../../src/api/headwater.ts'
import { closeRecord, type Engine, fenceRecord, HeadwaterError, open, trimRecord } from '../../src/index.ts'
import { testClock, testStorage } from '../support/index.ts'

/** A call of the API. Its text is for counterexamples. */
interface Call {
  /** `engine` is `hw` itself, or the engine behind the client: for what only an engine can do. */
  readonly perform: (hw: Headwater, engine: Engine) => Promise<unknown>
  toString(): string
}

function call<Args extends unknown[]>(
  name: string,
  args: fc.Arbitrary<Args>,
  perform: (hw: Headwater, args: Args, engine: Engine) => Promise<unknown>,
): fc.Arbitrary<Call> {
  return args.map((values) => ({
    perform: (hw, engine) => perform(hw, values, engine),
    toString: () => `${name} ${JSON.stringify(values)}`,
  }))
}

// Few values, so that calls meet. Tests of the API pass invalid ones through a client.
const basin = fc.constantFrom('basin-one', 'basin-two')
const target = fc.constantFrom<readonly [string, string]>(
  ['basin-one', 's'],
  ['basin-one', 's'],
  ['basin-one', 't/ü?#&'],
  ['basin-two', 's'],
)
const streamOf = (hw: Headwater, [name, stream]: readonly [string, string]) => hw.basin(name).stream(stream)

const streamConfig = fc.record(
  {
    retentionPolicy: fc.constantFrom('infinite' as const, { ageSeconds: 60 }),
    storageClass: fc.constantFrom('express' as const, 'standard' as const),
    timestamping: fc.record({
      mode: fc.constantFrom('client-prefer' as const, 'client-require' as const, 'arrival' as const),
      uncapped: fc.boolean(),
    }),
    deleteOnEmpty: fc.record({ minAgeSeconds: fc.constantFrom(0, 60) }),
  },
  { requiredKeys: [] },
)
const basinConfig = fc.record(
  {
    defaultStreamConfig: streamConfig,
    createStreamOnAppend: fc.boolean(),
    createStreamOnRead: fc.boolean(),
  },
  { requiredKeys: [] },
)
const requestToken = fc.constantFrom('request-1', 'request-2')
const listQuery = fc.record(
  {
    prefix: fc.constantFrom('', 'basin-', 't/'),
    startAfter: fc.constantFrom('', 'basin-one', 's'),
    limit: fc.constantFrom(1, 2, 1000),
  },
  { requiredKeys: [] },
)
const records = fc.constantFrom(
  'a',
  new Uint8Array([0, 255]),
  ['b', { body: 'ü€𝄞', headers: [['k', 'v']] as const }],
  { body: 'timed', timestamp: 900_000 },
  fenceRecord('me'),
  [trimRecord(2), fenceRecord('')],
  ['last', closeRecord()],
)
const seq = fc.constantFrom(0, 0, 1, 1, 2, 3)
const appendOptions = fc.oneof(
  fc.constant({}),
  fc.record({ matchSeqNum: fc.constantFrom(0, 1, 2, 5) }),
  fc.record({ fencingToken: fc.constantFrom('', 'me') }),
  fc.record({ producer: fc.record({ id: fc.constant('p'), epoch: fc.constantFrom(0, 0, 0, 1), seq }) }),
  fc.record({ streamSeq: fc.constantFrom('a', 'b') }),
)
const start = fc.oneof(
  fc.constant({}),
  fc.record({ seqNum: fc.constantFrom(0, 1, 50) }),
  fc.record({ timestamp: fc.constantFrom(0, 1_000_001, 9e12) }),
  fc.record({ tailOffset: fc.constantFrom(0, 1, 5_000) }),
)
const bounds = fc.record(
  {
    clamp: fc.boolean(),
    count: fc.constantFrom(0, 1, 3),
    bytes: fc.constantFrom(0, 20, 5_000_000),
    until: fc.constantFrom(1_000_500, 9e12),
  },
  { requiredKeys: [] },
)
const readQuery = fc.tuple(start, bounds).map(([one, other]) => ({ ...one, ...other }))
const readOptions = fc.record(
  { as: fc.constantFrom('string' as const, 'bytes' as const), commands: fc.boolean(), create: fc.boolean() },
  { requiredKeys: [] },
)
const creation = fc.record(
  {
    expiry: fc.constantFrom({ idleSeconds: 25 }, { at: 1_100_000 }),
    fork: fc.record({ stream: fc.constantFrom('s', 't/ü?#&'), seqNum: fc.constantFrom(0, 1, 3) }),
    records: fc.constantFrom(['first', 'second'], [closeRecord()]),
  },
  { requiredKeys: [] },
)

const CONTROL = [
  call('createBasin', fc.tuple(basin, basinConfig, requestToken), (hw, [name, config, token]) =>
    hw.createBasin(name, config, { requestToken: token }),
  ),
  call('ensureBasin', fc.tuple(basin, basinConfig), (hw, args) => hw.ensureBasin(...args)),
  call('listBasins', fc.tuple(listQuery), (hw, [query]) => hw.listBasins(query)),
  call('basin.config', fc.tuple(basin), (hw, [name]) => hw.basin(name).config()),
  call('basin.reconfigure', fc.tuple(basin, basinConfig), (hw, [name, change]) =>
    hw.basin(name).reconfigure(change),
  ),
  call('basin.delete', fc.tuple(basin), (hw, [name]) => hw.basin(name).delete()),
  call('createStream', fc.tuple(target, streamConfig, requestToken), (hw, [names, config, token]) =>
    hw.basin(names[0]).createStream(names[1], config, { requestToken: token }),
  ),
  // The wire protocol does not have them: the client reads and appends to what its server has created.
  call('createStream of the engine', fc.tuple(target, creation), (_, [names, options], engine) =>
    engine.basin(names[0]).createStream(names[1], {}, options),
  ),
  call('ensureStream', fc.tuple(target, streamConfig), (hw, [names, config]) =>
    hw.basin(names[0]).ensureStream(names[1], config),
  ),
  call('listStreams', fc.tuple(basin, listQuery), (hw, [name, query]) => hw.basin(name).listStreams(query)),
  call('stream.config', fc.tuple(target), (hw, [names]) => streamOf(hw, names).config()),
  call('stream.reconfigure', fc.tuple(target, streamConfig), (hw, [names, change]) =>
    streamOf(hw, names).reconfigure(change),
  ),
  call('stream.delete', fc.tuple(target), (hw, [names]) => streamOf(hw, names).delete()),
]

const RECORDS = [
  call('append', fc.tuple(target, records, appendOptions), (hw, [names, input, options]) =>
    streamOf(hw, names).append(input as string, options),
  ),
  call('append', fc.tuple(target, records), (hw, [names, input]) =>
    streamOf(hw, names).append(input as string),
  ),
  call('close', fc.tuple(target), (hw, [names]) => streamOf(hw, names).close()),
  call('trim', fc.tuple(target, fc.constantFrom(0, 1, 3)), (hw, [names, seqNum]) =>
    streamOf(hw, names).trim(seqNum),
  ),
  call('checkTail', fc.tuple(target), (hw, [names]) => streamOf(hw, names).checkTail()),
  call('readBatch', fc.tuple(target, readQuery, readOptions), async (hw, [names, query, options]) => {
    const { records: found, count, tail } = await streamOf(hw, names).readBatch(query, options)
    // Published clients of the protocol rely on an empty batch without a tail.
    return { records: found, count, tail: count === 0 ? undefined : tail }
  }),
  call('read', fc.tuple(target, readQuery, readOptions), (hw, [names, query, options]) =>
    streamOf(hw, names).read(query, options).toArray(),
  ),
  call('follow', fc.tuple(target, readQuery, readOptions), (hw, [names, query, options]) =>
    streamOf(hw, names)
      .follow({ ...query, waitMs: 0 }, options)
      .toArray(),
  ),
]

const calls = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.oneof(...RECORDS) }, { weight: 2, arbitrary: fc.oneof(...CONTROL) }),
  { minLength: 10, maxLength: 25 },
)

/** What a caller sees of a call: the value or the error. */
async function outcomeOf({ perform }: Call, hw: Headwater, engine: Engine) {
  try {
    return { value: await perform(hw, engine) }
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    // The protocol has no field of an error: a client knows it only where the message names it.
    const { code, status, retryable, mayHaveEffects, seqNum, tail, fencingToken } = error
    const { producerEpoch, expectedSeq, receivedSeq, lastSeq, streamSeq } = error
    const ofProducer = { producerEpoch, expectedSeq, receivedSeq, lastSeq, streamSeq }
    // The protocol carries the next sequence number of a mismatch, and not the text about it.
    const message = code === 'seq_num_mismatch' ? '' : error.message
    const details = { status, retryable, mayHaveEffects, seqNum, tail, fencingToken, ...ofProducer }
    return { error: { code, message, ...details } }
  }
}

/** The protocol has no metadata and no expiry of streams. */
function withoutExtensions(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (name, member) =>
      name === 'metadata' || name === 'expiry' ? undefined : member,
    ) ?? 'null',
  )
}

/** A trim applies to all reads from then on over HTTP too: it has a grace period of 10 seconds there. */
const PAUSE_MS = 11_000

it('a client has the results and errors of an engine in process', { tags: ['slow'] }, async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(calls, async (drawn) => {
      const clock = testClock({ now: 1_000_000 })
      const local = await open({ storage: testStorage(), clock })
      const behind = await open({ storage: testStorage(), clock })
      const handler = createHandler(behind, { auth: 'none' })
      const remote = await connect({ url: 'http://localhost', fetch: handler, clock, random: () => 0.5 })
      for (const one of drawn) {
        const expected = await outcomeOf(one, local, local)
        const actual = await outcomeOf(one, remote, behind)
        expect({ call: `${one}`, outcome: withoutExtensions(actual) }).toEqual({
          call: `${one}`,
          outcome: withoutExtensions(expected),
        })
        seen.add(expected.error?.code ?? 'ok')
        await clock.advance(PAUSE_MS)
      }
      await remote.close()
      await Promise.all([local.close(), behind.close()])
    }),
  )
  // Without each of these outcomes, the calls would prove too little.
  expect([...seen]).toEqual(
    expect.arrayContaining(['ok', 'stream_closed', 'stream_not_found', 'seq_num_mismatch', 'producer_gap']),
  )
})
