import fc from 'fast-check'
import type { Headwater } from '../../src/api/headwater.ts'
import { closeRecord, type Engine, fenceRecord, trimRecord } from '../../src/index.ts'
import { outcomeOf, SessionResult } from './differential-outcome.ts'

/** A call of the API. Its text is for counterexamples. */
export interface DrawnCall {
  /** `engine` is `hw` itself, or the engine behind the client: for what only an engine can do. */
  readonly perform: (hw: Headwater, engine: Engine) => Promise<unknown>
  toString(): string
}

const any = (value: unknown) => value as never

/** Few values, so that calls meet. The last ones are invalid. */
const basinName = fc.constantFrom('b', 'basin-one', 'basin-two', 'Basin', '', 'x'.repeat(49))
const longBasinName = basinName.filter((name) => name !== 'b')
const streamName = fc.constantFrom('s', 't/1', 't/ü?#&', '', 'x'.repeat(513))
const target = fc.oneof(
  { weight: 5, arbitrary: fc.constant(['basin-one', 's'] as const) },
  { weight: 1, arbitrary: fc.constantFrom(['plain-basin', 's'] as const) },
  fc.tuple(basinName, streamName),
)

/** In a basin that gets no cipher. */
const plainTarget = fc.constantFrom<readonly [string, string]>(['plain-basin', 's'], ['plain-basin', 't/1'])

const retention = fc.constantFrom(
  undefined,
  'infinite' as const,
  { ageSeconds: 60 },
  { ageSeconds: 0 },
  any('forever'),
)
const streamConfig = fc.oneof(
  fc.constant({}),
  fc.record(
    {
      retentionPolicy: retention,
      storageClass: fc.constantFrom('express' as const, 'standard' as const, any('cold')),
      timestamping: fc.record(
        {
          mode: fc.constantFrom(
            'client-prefer' as const,
            'client-require' as const,
            'arrival' as const,
            any(1),
          ),
          uncapped: fc.constantFrom(true, false, any('yes')),
        },
        { requiredKeys: [] },
      ),
      deleteOnEmpty: fc.record({ minAgeSeconds: fc.constantFrom(0, 60, -1) }),
    },
    { requiredKeys: [] },
  ),
)
const streamChange = fc.oneof(
  streamConfig,
  fc.record(
    {
      retentionPolicy: fc.constant(null),
      storageClass: fc.constant(null),
      timestamping: fc.constantFrom(null, { mode: null }, { uncapped: null }),
      deleteOnEmpty: fc.constantFrom(null, { minAgeSeconds: null }),
    },
    { requiredKeys: [] },
  ),
)
const basinConfig = fc.oneof(
  fc.constant({}),
  fc.record(
    {
      defaultStreamConfig: streamConfig,
      streamCipher: fc.constantFrom('aes-256-gcm' as const, any('rot13')),
      createStreamOnAppend: fc.boolean(),
      createStreamOnRead: fc.boolean(),
    },
    { requiredKeys: [] },
  ),
)
const basinChange = fc.oneof(
  basinConfig,
  fc.record(
    {
      defaultStreamConfig: fc.oneof(fc.constant(null), streamChange),
      streamCipher: fc.constant(null),
    },
    { requiredKeys: [] },
  ),
)

const listQuery = fc.record(
  {
    prefix: fc.constantFrom('', 'b', 'basin-', 't/', 'tok', 'B', any(5)),
    startAfter: fc.constantFrom('', 'b', 'basin-one', 's', 't/1', 'token-a', 'a'),
    limit: fc.constantFrom(0, 1, 2, 1000, 1001, -1, 1.5),
  },
  { requiredKeys: [] },
)

const HUGE = new Uint8Array(1_048_570)
const WITH_HEADERS = {
  body: 'x',
  headers: [
    ['k', 'v'],
    [new Uint8Array([255]), ''],
  ] as const,
}
const record = fc.constantFrom<never>(
  ...([
    'a',
    '',
    'ü€𝄞',
    new Uint8Array([0, 255]),
    WITH_HEADERS,
    { headers: [] },
    { body: 'timed', timestamp: 900_000 },
    { body: 'timed', timestamp: 1_100_000 },
    { body: 'timed', timestamp: -1 },
    { body: 'timed', timestamp: 2 ** 53 },
    { headers: [['', 'no name']] },
    { body: 5 },
    '\ud800',
    HUGE,
  ] as never[]),
)
const records = fc.oneof(
  { weight: 4, arbitrary: record },
  { weight: 4, arbitrary: fc.array(record, { maxLength: 4 }) },
  fc.constantFrom(
    any(fenceRecord('me')),
    any([fenceRecord(''), 'after']),
    any(closeRecord()),
    any(['last', closeRecord()]),
    any([closeRecord(), 'after']),
    any([trimRecord(2), fenceRecord('other')]),
    any(Array.from({ length: 1_001 }, () => 'x')),
    any(Array.from({ length: 1_000 }, () => 'x')),
    any(undefined),
  ),
)
const conditions = fc.record(
  {
    matchSeqNum: fc.constantFrom(0, 1, 2, 5, -1, 2 ** 53, any('0')),
    fencingToken: fc.constantFrom('', 'me', 'other', 'x'.repeat(37), any(5)),
  },
  { requiredKeys: [] },
)

const seq = fc.constantFrom(0, 0, 0, 1, 1, 2, 3)
const producer = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ id: fc.constantFrom('p', 'q'), epoch: fc.constantFrom(0, 0, 0, 1), seq }),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<never>(
      ...([
        { id: '', epoch: 0, seq: 0 },
        { id: 'p', epoch: -1, seq: 0 },
        { id: 'p', epoch: 0 },
        'p',
      ] as never[]),
    ),
  },
)
const appendOptions = fc.oneof(
  conditions,
  fc.record({ producer }),
  fc
    .tuple(
      conditions,
      fc.record(
        { producer, streamSeq: fc.constantFrom('a', 'b', 'ü', '', 'x'.repeat(257), any(5)) },
        { requiredKeys: [] },
      ),
    )
    .map(([some, others]) => ({ ...some, ...others })),
)

const start = fc.oneof(
  fc.constant({}),
  fc.record({ seqNum: fc.constantFrom(0, 1, 3, 50, 5_000, -1, 2 ** 53) }),
  fc.record({
    timestamp: fc.constantFrom<number | Date>(0, 950_000, 1_000_001, 9e12, -1, new Date(1_000_000)),
  }),
  fc.record({ tailOffset: fc.constantFrom(0, 1, 3, 5_000, -1) }),
  fc.constant({ seqNum: 0, tailOffset: 1 }),
)
const bounds = fc.record(
  {
    clamp: fc.boolean(),
    count: fc.constantFrom(0, 1, 3, 2_000, -1, any('1')),
    bytes: fc.constantFrom(0, 8, 20, 5_000_000),
    until: fc.constantFrom<number | Date>(0, 1_000_000, 1_000_500, 9e12, new Date(1_000_001)),
  },
  { requiredKeys: [] },
)
const readQuery = fc.tuple(start, bounds).map(([one, other]) => ({ ...one, ...other }))
const readOptions = fc.record(
  {
    as: fc.constantFrom('string' as const, 'bytes' as const, any('text')),
    commands: fc.boolean(),
    create: fc.boolean(),
  },
  { requiredKeys: [] },
)

const creation = fc.record(
  {
    metadata: fc.constantFrom({ 'content-type': 'text/plain' }, {}, any({ name: 5 })),
    expiry: fc.constantFrom<never>(
      ...([{ idleSeconds: 25 }, { at: 1_100_000 }, { at: new Date(9e12) }, { idleSeconds: 0 }] as never[]),
    ),
    fork: fc.record(
      { stream: fc.constantFrom('s', 't/1', 'missing'), seqNum: fc.constantFrom(0, 1, 3, 1_000, -1) },
      { requiredKeys: ['stream'] },
    ),
    records: fc.constantFrom<never>(...([['first', 'second'], [closeRecord()], []] as never[])),
  },
  { requiredKeys: [] },
)

const tokenId = fc.constantFrom('token-a', 'token-b', '', 'x'.repeat(97))
const tokenScope = fc.constantFrom<never>(
  ...([
    { ops: ['read'] },
    { basins: { prefix: '' }, streams: { exact: 's' }, opGroups: { stream: { read: true } } },
    { basins: { exact: 'B' }, ops: ['append', 'read'] },
    { ops: ['fly'] },
    {},
  ] as never[]),
)
const requestToken = fc.constantFrom('request-1', 'request-2', 'x'.repeat(37), '')

const text = (value: unknown): string =>
  JSON.stringify(value, (_, member) => (member instanceof Uint8Array ? `${member.length} bytes` : member)) ??
  String(value)

/** Draws the arguments of a call. */
export function drawn<Args extends unknown[]>(
  name: string,
  args: fc.Arbitrary<Args>,
  perform: (hw: Headwater, ...args: Args) => Promise<unknown>,
): fc.Arbitrary<DrawnCall> {
  return drawnOfEngine(name, args, (hw, _, ...values) => perform(hw, ...values))
}

export function drawnOfEngine<Args extends unknown[]>(
  name: string,
  args: fc.Arbitrary<Args>,
  perform: (hw: Headwater, engine: Engine, ...args: Args) => Promise<unknown>,
): fc.Arbitrary<DrawnCall> {
  return args.map((values) => ({
    perform: async (hw: Headwater, engine: Engine) => perform(hw, engine, ...values),
    toString: () => `${name} ${text(values)}`,
  }))
}

export const streamOf = (hw: Headwater, [basin, stream]: readonly [string, string]) =>
  hw.basin(basin).stream(stream)

const CONTROL: readonly fc.Arbitrary<DrawnCall>[] = [
  drawn('createBasin', fc.tuple(basinName, basinConfig), (hw, name, config) => hw.createBasin(name, config)),
  // Names of fewer than 8 characters are created without a request token: see docs/client.md.
  drawn('createBasin', fc.tuple(longBasinName, basinConfig, requestToken), (hw, name, config, token) =>
    hw.createBasin(name, config, { requestToken: token }),
  ),
  drawn('ensureBasin', fc.tuple(basinName, basinConfig), (hw, name, config) => hw.ensureBasin(name, config)),
  drawn('listBasins', fc.tuple(listQuery), (hw, query) => hw.listBasins(query)),
  drawn('basin.config', fc.tuple(basinName), (hw, name) => hw.basin(name).config()),
  drawn('basin.exists', fc.tuple(basinName), (hw, name) => hw.basin(name).exists()),
  drawn('basin.reconfigure', fc.tuple(basinName, basinChange), (hw, name, change) =>
    hw.basin(name).reconfigure(any(change)),
  ),
  drawn('basin.delete', fc.tuple(basinName), (hw, name) => hw.basin(name).delete()),
  drawn('createStream', fc.tuple(target, streamConfig), (hw, [basin, stream], config) =>
    hw.basin(basin).createStream(stream, config),
  ),
  drawn('createStream', fc.tuple(target, streamConfig, requestToken), (hw, [basin, stream], config, token) =>
    hw.basin(basin).createStream(stream, config, { requestToken: token }),
  ),
  // The wire protocol does not have them: the client reads and appends to what its server has created.
  drawnOfEngine('createStream of the engine', fc.tuple(target, creation), (_, engine, names, options) =>
    engine.basin(names[0]).createStream(names[1], {}, options),
  ),
  drawn('ensureStream', fc.tuple(target, streamConfig), (hw, [basin, stream], config) =>
    hw.basin(basin).ensureStream(stream, config),
  ),
  drawn('listStreams', fc.tuple(basinName, listQuery), (hw, name, query) =>
    hw.basin(name).listStreams(query),
  ),
  drawn('stream.config', fc.tuple(target), (hw, names) => streamOf(hw, names).config()),
  drawn('stream.exists', fc.tuple(target), (hw, names) => streamOf(hw, names).exists()),
  drawn('stream.reconfigure', fc.tuple(target, streamChange), (hw, names, change) =>
    streamOf(hw, names).reconfigure(any(change)),
  ),
  drawn('stream.delete', fc.tuple(target), (hw, names) => streamOf(hw, names).delete()),
  drawn('issueAccessToken', fc.tuple(tokenId, tokenScope), async (hw, id, scope) => {
    // The tokens are random.
    return (await hw.issueAccessToken({ id, scope })).length
  }),
  drawn('listAccessTokens', fc.tuple(listQuery), (hw, query) => hw.listAccessTokens(query)),
  drawn('revokeAccessToken', fc.tuple(tokenId), (hw, id) => hw.revokeAccessToken(id)),
]

const RECORDS: readonly fc.Arbitrary<DrawnCall>[] = [
  drawn('append', fc.tuple(target, records), (hw, names, input) => streamOf(hw, names).append(any(input))),
  drawn('append', fc.tuple(target, records, appendOptions), (hw, names, input, options) =>
    streamOf(hw, names).append(any(input), any(options)),
  ),
  drawn('append without autoCreate', fc.tuple(target, records), (hw, [basin, stream], input) =>
    hw.basin(basin, { autoCreate: false }).stream(stream).append(any(input)),
  ),
  drawn('fence', fc.tuple(target, fc.constantFrom('', 'me', 'x'.repeat(37))), (hw, names, token) =>
    streamOf(hw, names).fence(token),
  ),
  drawn('close', fc.tuple(target, appendOptions), (hw, names, options) =>
    streamOf(hw, names).close(any(options)),
  ),
  drawn('append of a producer', fc.tuple(target, record, producer), (hw, names, input, batch) =>
    streamOf(hw, names).append(input, any({ producer: batch })),
  ),
  drawn('trim', fc.tuple(target, fc.constantFrom(0, 1, 3, 2 ** 53 - 1, -1)), (hw, names, seqNum) =>
    streamOf(hw, names).trim(seqNum),
  ),
  drawn('checkTail', fc.tuple(target), (hw, names) => streamOf(hw, names).checkTail()),
  drawn('readBatch', fc.tuple(target, readQuery, readOptions), async (hw, names, query, options) => {
    const { records: found, count, tail } = await streamOf(hw, names).readBatch(any(query), options)
    return { records: found, count, tail }
  }),
  drawn('read', fc.tuple(target, readQuery, readOptions), (hw, names, query, options) =>
    streamOf(hw, names).read(any(query), options).toArray(),
  ),
  drawn('follow', fc.tuple(target, readQuery, readOptions), (hw, names, query, options) =>
    streamOf(hw, names)
      .follow({ ...query, waitMs: 0 } as never, options)
      .toArray(),
  ),
  drawnOfEngine(
    'append session',
    fc.tuple(plainTarget, fc.array(fc.tuple(records, conditions), { maxLength: 3 })),
    appendAll,
  ),
]

/** Appends in a session: the outcome of each batch, and of the session. */
async function appendAll(
  hw: Headwater,
  engine: Engine,
  names: readonly [string, string],
  batches: readonly (readonly [unknown, object])[],
): Promise<SessionResult> {
  const session = await streamOf(hw, names).appendSession()
  const outcomes = batches.map(([input, options]) => {
    const submitted = session.submit(any(input), options)
    return outcomeOf({ perform: async () => (await submitted).ack() }, hw, engine)
  })
  outcomes.push(outcomeOf({ perform: () => session.close() }, hw, engine))
  return new SessionResult(await Promise.all(outcomes))
}

/** A sequence of calls, mostly of records. */
export const calls: fc.Arbitrary<DrawnCall[]> = fc.array(
  fc.oneof({ weight: 3, arbitrary: fc.oneof(...RECORDS) }, { weight: 2, arbitrary: fc.oneof(...CONTROL) }),
  { minLength: 5, maxLength: 30 },
)
