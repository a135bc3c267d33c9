import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import type { RetentionPolicy } from '../../src/index.ts'
import { BASIN, type Service, startService } from './support.ts'

const WEEK = { age: 604_800 }
const INFINITE = { infinite: {} }
const CREATES = { create_stream_on_append: true, create_stream_on_read: true }
const RECORD = { json: { records: [{ body: 'a' }] } }

/** The retention of a stream and the default of its basin. */
async function policiesOf({ call }: Service): Promise<unknown[]> {
  const basin = await (await call('GET', `/v1/basins/${BASIN}`)).json()
  const own = await (await call('GET', '/v1/streams/s')).json()
  return [own.retention_policy, basin.default_stream_config.retention_policy]
}

const STREAMS: Readonly<Record<string, (service: Service) => Promise<unknown>>> = {
  POST: ({ call }) => call('POST', '/v1/streams', { json: { stream: 's' } }),
  PUT: ({ call }) => call('PUT', '/v1/streams/s'),
  'an append': ({ call }) => call('POST', '/v1/streams/s/records', RECORD),
  'a tail check': ({ call }) => call('GET', '/v1/streams/s/records/tail'),
}

/** How a basin is created, and with which handlers it and its stream; then what both have. */
const CASES: readonly (readonly [
  title: string,
  basin: object | 'in process',
  handlers: readonly [ofBasin?: RetentionPolicy | undefined, ofStream?: RetentionPolicy | undefined],
  policies: readonly unknown[],
])[] = [
  ['has a week in a basin that was created over HTTP', CREATES, [], [WEEK, null]],
  ['is kept forever in a basin that was created in process', 'in process', [], [INFINITE, INFINITE]],
  [
    'has the default of its basin',
    { ...CREATES, default_stream_config: { retention_policy: { age: 60 } } },
    ['infinite', 'infinite'],
    [{ age: 60 }, { age: 60 }],
  ],
  [
    "has the handler's in a basin that was created by it",
    CREATES,
    [{ ageSeconds: 86_400 }, { ageSeconds: 86_400 }],
    [{ age: 86_400 }, { age: 86_400 }],
  ],
  ["has the handler's in a basin without a default", CREATES, [undefined, 'infinite'], [INFINITE, null]],
]

describe.each(Object.entries(STREAMS))('a stream that is created by %s without a retention', (_, create) => {
  test.each(CASES)('%s', async (_title, config, [ofBasin, ofStream], policies) => {
    const service = await startService()
    const by = (retention: RetentionPolicy | undefined) => service.with({ retention })
    if (config === 'in process') {
      await service.hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
    } else await by(ofBasin)('POST', '/v1/basins', { json: { basin: BASIN, config } })
    await create({ ...service, call: by(ofStream) })
    expect(await policiesOf(service)).toEqual(policies)
  })
})

test('a stream returns to the default of the side that clears its retention', async () => {
  const service = await startService()
  const { call } = service
  await call('PUT', `/v1/basins/${BASIN}`)
  await call('PUT', '/v1/streams/s', { json: { retention_policy: { age: 60 } } })
  await call('PATCH', '/v1/streams/s', { json: { retention_policy: null } })
  expect(await policiesOf(service)).toEqual([WEEK, null])
  const clear = { json: { retention_policy: null } }
  await service.with({ retention: 'infinite' })('PATCH', '/v1/streams/s', clear)
  expect(await policiesOf(service)).toEqual([INFINITE, null])
})

test.each([[{ ageSeconds: 0 }], [{ ageSeconds: 1.5 }], ['forever'], [null], [60]])(
  'a handler rejects the retention %j',
  async (retention) => {
    const { hw } = await startService()
    expect(() => createHandler(hw, { auth: 'none', retention: retention as RetentionPolicy })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
  },
)

describe('GET, then PUT with the same configuration', () => {
  const streamConfig = fc.record(
    {
      storage_class: fc.constantFrom('standard', 'express', null),
      retention_policy: fc.constantFrom(undefined, INFINITE, { age: 60 }, null),
      timestamping: fc.constantFrom(
        null,
        {},
        { mode: 'arrival' },
        { mode: 'client-prefer', uncapped: true },
        { mode: null, uncapped: null },
      ),
      delete_on_empty: fc.constantFrom(null, {}, { min_age_secs: 0 }, { min_age_secs: 60 }),
    },
    { requiredKeys: [] },
  )
  const basinConfig = fc.record(
    {
      default_stream_config: fc.oneof(streamConfig, fc.constant(null)),
      create_stream_on_append: fc.constant(true),
      create_stream_on_read: fc.boolean(),
    },
    { requiredKeys: ['create_stream_on_append'] },
  )
  /** The default of the handler. */
  const side = fc.constantFrom<RetentionPolicy | undefined>(undefined, 'infinite', { ageSeconds: 86_400 })

  async function expectNoop(service: Service, retention: RetentionPolicy | undefined, path: string) {
    const call = service.with({ retention })
    const config = await (await call('GET', path)).json()
    const response = await call('PUT', path, { json: path.includes('basins') ? { config } : config })
    expect(response.headers.get('svc-provision-result'), JSON.stringify(config)).toBe('noop')
    expect(await (await call('GET', path)).json()).toEqual(config)
  }

  test('is `noop` for every basin and stream, however they were made and changed', {
    tags: ['slow'],
  }, async () => {
    const service = await startService()
    let count = 0
    const property = fc.asyncProperty(
      fc.tuple(basinConfig, fc.option(basinConfig), fc.constantFrom('POST', 'PUT', 'in process')),
      fc.tuple(streamConfig, fc.option(streamConfig), fc.constantFrom('POST', 'PUT', 'append', 'in process')),
      fc.tuple(side, side),
      async ([basin, basinChange, basinWay], [stream, change, way], [creating, putting]) => {
        const name = `test-basin-${count++}`
        const options = { basin: name }
        const call = service.with({ retention: creating })
        if (basinWay === 'POST') await call('POST', '/v1/basins', { json: { basin: name, config: basin } })
        else if (basinWay === 'PUT') await call('PUT', `/v1/basins/${name}`, { json: { config: basin } })
        else await service.hw.createBasin(name, { createStreamOnAppend: true })
        if (way === 'POST')
          await call('POST', '/v1/streams', { ...options, json: { stream: 's', config: stream } })
        else if (way === 'PUT') await call('PUT', '/v1/streams/s', { ...options, json: stream })
        else if (way === 'append') await call('POST', '/v1/streams/s/records', { ...options, ...RECORD })
        else await service.hw.basin(name).createStream('s')
        if (change !== null) await call('PATCH', '/v1/streams/s', { ...options, json: change })
        if (basinChange !== null) await call('PATCH', `/v1/basins/${name}`, { json: basinChange })
        const inBasin: Service = {
          ...service,
          with: (more) => (method, path, init) => service.with(more)(method, path, { ...options, ...init }),
        }
        await expectNoop(inBasin, putting, '/v1/streams/s')
        await expectNoop(inBasin, putting, `/v1/basins/${name}`)
      },
    )
    await fc.assert(property)
  })
})
