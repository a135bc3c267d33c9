import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { fenceRecord, type RecordInput, trimRecord } from '../../src/index.ts'
import type { BasinConfigInput, StreamConfigInput } from '../../src/model/config.ts'
import { shareOfRuns } from '../support/property-runs.ts'
import { contentOf, type Endpoint, exported, imported, KEY, type Kind, openEndpoint } from './support.ts'

const UNUSUAL_NAMES = [
  ...['a', 'a/b', 'ä?', '%2f', '%2e%2e', '%', '__proto__', '\u0001', ' ', 'a b', '\u{1f600}', '\uffff', '#?'],
  ...['\ufeffx', '...', 'a\\b', 'a/../b', '//', '+', '\n'],
]

const bytes = fc.oneof(
  fc.string({ maxLength: 12, unit: 'binary' }).map((text) => new TextEncoder().encode(text)),
  fc.uint8Array({ maxLength: 12 }),
  fc.constantFrom('', '\u0000\u2028"\\', '\ufeffx').map((text) => new TextEncoder().encode(text)),
)
const plainRecord = fc.record({
  body: bytes,
  headers: fc.array(
    fc.tuple(
      bytes.filter(({ length }) => length > 0),
      bytes,
    ),
    { maxLength: 2 },
  ),
  timestamp: fc.option(fc.integer({ min: 0, max: 2e12 }), { nil: undefined }),
})
const record = fc.oneof(
  { weight: 6, arbitrary: plainRecord },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('', 'owner-1', '\u{1f600}')
      .map((token) => ({ ...fenceRecord(token), timestamp: 5 })),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 0, max: 40 }).map((seqNum) => ({ ...trimRecord(seqNum), timestamp: 6 })),
  },
)
const streamConfig: fc.Arbitrary<StreamConfigInput> = fc.record(
  {
    storageClass: fc.constantFrom('standard' as const, 'express' as const),
    retentionPolicy: fc.constantFrom('infinite' as const, { ageSeconds: 60 }, { ageSeconds: 100_000 }),
    timestamping: fc.record({
      mode: fc.constantFrom('client-prefer' as const, 'client-require' as const),
      uncapped: fc.constant(true),
    }),
    deleteOnEmpty: fc.record({ minAgeSeconds: fc.constantFrom(0, 1_000_000) }),
  },
  { requiredKeys: [] },
)
const basinConfig: fc.Arbitrary<BasinConfigInput> = fc.record(
  {
    defaultStreamConfig: streamConfig,
    streamCipher: fc.constantFrom(null, 'aes-256-gcm' as const),
    createStreamOnAppend: fc.boolean(),
    createStreamOnRead: fc.boolean(),
  },
  { requiredKeys: [] },
)
type Step =
  | { readonly append: readonly Exclude<RecordInput, string | Uint8Array>[] }
  | { readonly configure: Omit<StreamConfigInput, 'retentionPolicy'> }
  | { readonly sleepSeconds: number }
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ append: fc.array(record, { minLength: 1, maxLength: 8 }) }) },
  // Another retention would leave records before others that have expired.
  {
    weight: 1,
    arbitrary: streamConfig.map(({ retentionPolicy: _, ...configure }) => ({ configure })),
  },
  { weight: 1, arbitrary: fc.record({ sleepSeconds: fc.constantFrom(1, 70) }) },
)
const world = fc.dictionary(
  fc.constantFrom('a', 'basin-1', 'basin-2'),
  fc.record({
    config: basinConfig,
    later: basinConfig,
    streams: fc.dictionary(
      fc.oneof(fc.constantFrom(...UNUSUAL_NAMES), fc.string({ minLength: 3, maxLength: 6 })),
      fc.record({ config: streamConfig, steps: fc.array(step, { maxLength: 6 }) }),
      { maxKeys: 3 },
    ),
  }),
  { maxKeys: 2 },
)
type World = typeof world extends fc.Arbitrary<infer Value> ? Value : never

async function build(
  { hw, clock }: Endpoint,
  world: World,
  over: (config: BasinConfigInput) => BasinConfigInput = () => ({}),
): Promise<void> {
  for (const [name, { config, later, streams }] of Object.entries(world)) {
    await hw.createBasin(name, config)
    const basin = hw.basin(name)
    for (const [stream, { config, steps }] of Object.entries(streams)) {
      await basin.createStream(stream, config)
      for (const step of steps) {
        if ('sleepSeconds' in step) await clock.advance(step.sleepSeconds * 1000)
        else if ('configure' in step) await basin.stream(stream).reconfigure(step.configure)
        else {
          const { timestamping } = await basin.stream(stream).config()
          const required = timestamping.mode === 'client-require' ? 7 : undefined
          const inputs = step.append.map((input) => ({ ...input, timestamp: input.timestamp ?? required }))
          await basin.stream(stream, { encryptionKey: KEY }).append(inputs)
        }
      }
    }
    await hw.basin(name).reconfigure({ ...later, ...over(config) })
  }
}

/** The records without their numbers and without trims, by stream. */
function recordsOf(text: string): unknown[] {
  return text.split('\n').flatMap((line) => {
    const { seq_num, stream, ...record } = line === '' ? {} : JSON.parse(line)
    if (stream !== undefined) return [stream]
    return seq_num === undefined || line.includes('["","trim"]') ? [] : [record]
  })
}

describe('an export', { tags: ['slow'] }, () => {
  it.each<Kind>(['server', 'directory'])(
    'of a %s equals the export of its import into a directory',
    async (kind) => {
      await fc.assert(
        fc.asyncProperty(world, async (world) => {
          const source = await openEndpoint({ kind })
          await build(source, world)
          const first = await exported(source.service)
          const target = await openEndpoint({ kind: 'directory', clock: source.clock })
          await imported(target.service, first)
          expect(contentOf(await exported(target.service))).toBe(contentOf(first))
          await source.hw.close()
          await target.hw.close()
        }),
        // A run is a whole export and import.
        shareOfRuns(1 / 2),
      )
    },
  )

  it('is imported into a server with other numbers', async () => {
    await fc.assert(
      fc.asyncProperty(world, async (world) => {
        const source = await openEndpoint()
        // A server gives new streams the cipher of their basin.
        await build(source, world, (config) => ({ streamCipher: config.streamCipher ?? null }))
        const first = await exported(source.service)
        const target = await openEndpoint({ clock: source.clock })
        await imported(target.service, first, { renumber: true })
        const again = await exported(target.service)
        expect(recordsOf(again)).toEqual(expect.arrayContaining(recordsOf(first)))
        expect([...again.matchAll(/"start":(\d+)/g)].every(([, start]) => start === '0')).toBe(true)
        await source.hw.close()
        await target.hw.close()
      }),
      shareOfRuns(1 / 2),
    )
  })
})

it.each<Kind>(['server', 'directory'])(
  'times at their limits are imported into a %s unchanged',
  async (kind) => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a')
    await source.basin.createStream('s', { retentionPolicy: 'infinite', timestamping: { uncapped: true } })
    await source.stream('s').append([
      { body: '\ufeffbom', timestamp: 0 },
      { body: '', timestamp: 0 },
      {
        headers: [
          ['a', Uint8Array.of(0xff)],
          ['__proto__', ''],
        ],
        timestamp: Number.MAX_SAFE_INTEGER,
      },
      { body: '\u2028\u0000\r\n', timestamp: Number.MAX_SAFE_INTEGER },
    ])
    const text = await exported(source.service)
    const target = await openEndpoint({ kind })
    await imported(target.service, text)
    expect(contentOf(await exported(target.service))).toBe(contentOf(text))
  },
)

it('a token with auto-prefix exports and imports names without the prefix', async () => {
  const { hw, with: withOptions } = await openEndpoint()
  await hw.createBasin('basin-a')
  const basin = hw.basin('basin-a')
  for (const name of ['u1/a', 'u1/b', 'u2/a']) {
    await basin.createStream(name)
    await basin.stream(name).append([name, fenceRecord('t'), trimRecord(0)])
  }
  const all = { read: true, write: true }
  const token = await hw.issueAccessToken({
    id: 'of-u1',
    scope: {
      basins: { prefix: '' },
      streams: { prefix: 'u1/' },
      opGroups: { account: all, basin: all, stream: all },
    },
    autoPrefixStreams: true,
  })
  const service = withOptions({ fetch: createHandler(hw), token })
  const text = await exported(service)
  expect([...text.matchAll(/"stream":"([^"]*)"/g)].map(([, name]) => name)).toEqual(['a', 'b'])
  for (const name of ['u1/a', 'u1/b']) await basin.stream(name).delete()
  await imported(service, text)
  expect(contentOf(await exported(service))).toBe(contentOf(text))
})
