import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import type { Engine, RetentionPolicy } from '../../src/index.ts'
import { letPass, testStorage } from '../support/index.ts'
import { BASIN, type Service, startService } from './support.ts'

const WEEK = { age: 604_800 }
const INFINITE = { infinite: {} }

/** The retention of a stream and the default of its basin. */
async function policiesOf({ call }: Service, stream: string): Promise<unknown[]> {
  const basin = (await (await call('GET', `/v1/basins/${BASIN}`)).json()) as {
    default_stream_config: { retention_policy: unknown }
  }
  const own = (await (await call('GET', `/v1/streams/${stream}`)).json()) as { retention_policy: unknown }
  return [own.retention_policy, basin.default_stream_config.retention_policy]
}

const CREATES = { create_stream_on_append: true, create_stream_on_read: true }
const RECORD = { json: { records: [{ body: 'a' }] } }

describe('a stream that is created over HTTP without a retention', () => {
  const streams: [string, (service: Service) => Promise<unknown>][] = [
    ['by POST', ({ call }) => call('POST', '/v1/streams', { json: { stream: 's' } })],
    ['by PUT', ({ call }) => call('PUT', '/v1/streams/s')],
    ['by an append', ({ call }) => call('POST', '/v1/streams/s/records', RECORD)],
    ['by a tail check', ({ call }) => call('GET', '/v1/streams/s/records/tail')],
  ]

  test.each(streams)('has a week in a basin that was created over HTTP: %s', async (_, create) => {
    const service = await startService()
    await service.call('PUT', `/v1/basins/${BASIN}`, { json: { config: CREATES } })
    await create(service)
    expect(await policiesOf(service, 's')).toEqual([WEEK, null])
  })

  test.each(streams)('is kept forever in a basin that was created in process: %s', async (_, create) => {
    const service = await startService()
    await service.hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
    await create(service)
    expect(await policiesOf(service, 's')).toEqual([INFINITE, INFINITE])
  })

  test.each(streams)('has the default of its basin: %s', async (_, create) => {
    const service = await startService({ retention: 'infinite' })
    const config = { ...CREATES, default_stream_config: { retention_policy: { age: 60 } } }
    await service.call('POST', '/v1/basins', { json: { basin: BASIN, config } })
    await create(service)
    expect(await policiesOf(service, 's')).toEqual([{ age: 60 }, { age: 60 }])
  })

  test.each(streams)("has the handler's in a basin that was created by it: %s", async (_, create) => {
    const service = await startService({ retention: { ageSeconds: 86_400 } })
    await service.call('POST', '/v1/basins', { json: { basin: BASIN, config: CREATES } })
    await create(service)
    expect(await policiesOf(service, 's')).toEqual([{ age: 86_400 }, { age: 86_400 }])
  })

  test.each(streams)("has the handler's in a basin without a default: %s", async (_, create) => {
    const service = await startService()
    await service.call('PUT', `/v1/basins/${BASIN}`, { json: { config: CREATES } })
    await create({ ...service, call: service.with({ retention: 'infinite' }) })
    expect(await policiesOf(service, 's')).toEqual([INFINITE, null])
  })

  test('returns to the default of the side that clears it', async () => {
    const service = await startService()
    const { call } = service
    await call('PUT', `/v1/basins/${BASIN}`)
    await call('PUT', '/v1/streams/s', { json: { retention_policy: { age: 60 } } })
    await call('PATCH', '/v1/streams/s', { json: { retention_policy: null } })
    expect(await policiesOf(service, 's')).toEqual([WEEK, null])
    await service.with({ retention: 'infinite' })('PATCH', '/v1/streams/s', {
      json: { retention_policy: null },
    })
    expect(await policiesOf(service, 's')).toEqual([INFINITE, null])
  })

  test('has a week with an access token, too', async () => {
    const service = await startService()
    const token = await service.hw.issueAccessToken({
      id: 'all',
      scope: {
        basins: { prefix: '' },
        streams: { prefix: '' },
        opGroups: { account: { write: true }, stream: { write: true } },
      },
    })
    const call = service.with({ auth: 'token' })
    const headers = { authorization: `Bearer ${token}` }
    expect((await call('PUT', `/v1/basins/${BASIN}`, { headers, json: { config: CREATES } })).status).toBe(
      201,
    )
    expect((await call('POST', '/v1/streams/s/records', { ...RECORD, headers })).status).toBe(200)
    expect(await policiesOf(service, 's')).toEqual([WEEK, null])
  })
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

test('a longer retention over HTTP keeps the records that are stored, a shorter one applies to later ones', async () => {
  const service = await startService()
  const { call, clock } = service
  await call('PUT', `/v1/basins/${BASIN}`)
  const bodies = async () => {
    const response = await call('GET', '/v1/streams/s/records?seq_num=0')
    const { records = [] } = (await response.json()) as { records?: { body: string }[] }
    return records.map(({ body }) => body)
  }
  const append = (body: string) => call('POST', '/v1/streams/s/records', { json: { records: [{ body }] } })
  await call('PUT', '/v1/streams/s', { json: { retention_policy: { age: 60 } } })
  await append('a')
  await call('PATCH', '/v1/streams/s', { json: { retention_policy: { age: 7_200 } } })
  await append('b')
  await call('PUT', '/v1/streams/s', { json: { retention_policy: { age: 600 } } })
  await append('c')
  await clock.advance('30m')
  expect(await bodies()).toEqual(['a', 'b'])
  await call('PUT', '/v1/streams/s', { json: { retention_policy: INFINITE } })
  await letPass(clock, '10h')
  expect(await bodies()).toEqual(['a', 'b'])
})

describe('GET, then PUT with the same configuration, is `noop`', () => {
  const policy = fc.constantFrom(undefined, INFINITE, { age: 60 }, null)
  const streamConfig = fc.record(
    {
      storage_class: fc.constantFrom('standard', 'express', null),
      retention_policy: policy,
      timestamping: fc.constantFrom(
        null,
        {},
        { mode: 'arrival' },
        { uncapped: false },
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
      stream_cipher: fc.constantFrom('aes-256-gcm', null),
      create_stream_on_append: fc.boolean(),
      create_stream_on_read: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  /** The default of the handler. */
  const side = fc.constantFrom<RetentionPolicy | undefined>(undefined, 'infinite', { ageSeconds: 86_400 })

  async function expectNoop(
    service: Service,
    retention: RetentionPolicy | undefined,
    path: string,
    isBasin: boolean,
  ) {
    const call = service.with({ retention })
    const config = await (await call('GET', path)).json()
    const response = await call('PUT', path, { json: isBasin ? { config } : config })
    expect(response.headers.get('svc-provision-result'), JSON.stringify(config)).toBe('noop')
    expect(await (await call('GET', path)).json()).toEqual(config)
  }

  test('for every basin, however it was created and changed', async () => {
    const service = await startService()
    let count = 0
    const ways: ((
      name: string,
      config: object,
      retention: RetentionPolicy | undefined,
    ) => Promise<unknown>)[] = [
      (basin, config, retention) =>
        service.with({ retention })('POST', '/v1/basins', { json: { basin, config } }),
      (basin, config, retention) =>
        service.with({ retention })('PUT', `/v1/basins/${basin}`, { json: { config } }),
      (basin, _, retention) => service.with({ retention })('PUT', `/v1/basins/${basin}`),
      (basin) => service.hw.createBasin(basin),
      (basin) => service.hw.ensureBasin(basin, { createStreamOnRead: true }),
      (basin) => service.hw.basin(basin).stream('s').append('a'),
    ]
    const property = fc.asyncProperty(
      fc.nat(ways.length - 1),
      basinConfig,
      fc.option(basinConfig),
      side,
      side,
      async (way, config, change, creating, putting) => {
        const name = `test-basin-${count++}`
        await ways[way]!(name, config, creating)
        if (change !== null)
          await service.with({ retention: creating })('PATCH', `/v1/basins/${name}`, { json: change })
        await expectNoop(service, putting, `/v1/basins/${name}`, true)
      },
    )
    await fc.assert(property, { numRuns: 300 })
  })

  test('for every stream, however it was created and changed', async () => {
    const service = await startService()
    await service.hw.createBasin(BASIN)
    let count = 0
    const streams = (hw: Engine) => hw.basin(BASIN)
    const ways: ((
      name: string,
      config: object,
      retention: RetentionPolicy | undefined,
    ) => Promise<unknown>)[] = [
      (stream, config, retention) =>
        service.with({ retention })('POST', '/v1/streams', { json: { stream, config } }),
      (stream, config, retention) =>
        service.with({ retention })('PUT', `/v1/streams/${stream}`, { json: config }),
      (stream, _, retention) => service.with({ retention })('POST', `/v1/streams/${stream}/records`, RECORD),
      (stream) => streams(service.hw).createStream(stream),
      (stream) => streams(service.hw).stream(stream).append('a'),
    ]
    const property = fc.asyncProperty(
      basinConfig,
      fc.nat(ways.length - 1),
      streamConfig,
      fc.option(streamConfig),
      fc.option(basinConfig),
      fc.tuple(side, side),
      async (basin, way, config, change, basinChange, [creating, putting]) => {
        const name = `s${count++}`
        const call = service.with({ retention: creating })
        await call('PUT', `/v1/basins/${BASIN}`, {
          json: { config: { ...basin, stream_cipher: null, create_stream_on_append: true } },
        })
        await ways[way]!(name, config, creating)
        if (change !== null) await call('PATCH', `/v1/streams/${name}`, { json: change })
        if (basinChange !== null) await call('PATCH', `/v1/basins/${BASIN}`, { json: basinChange })
        await expectNoop(service, putting, `/v1/streams/${name}`, false)
      },
    )
    await fc.assert(property, { numRuns: 300 })
  })

  test.each([
    { defaultStreamConfig: {} },
    { defaultStreamConfig: { storageClass: 'express' } },
    { defaultStreamConfig: { retentionPolicy: { ageSeconds: 60 } } },
  ])(
    'for a basin that an earlier version stored with %j, whose streams keep their meaning',
    async (config) => {
      const storage = testStorage()
      const service = await startService({}, { storage })
      await service.hw.createBasin(BASIN)
      const session = await storage.open({ clock: service.clock, onLogChanged() {} })
      const { value, ...document } = (await session.get('basins', BASIN))!
      const stored = { ...(value as object), config: { ...config, ...OTHERS } }
      await session.commit([{ kind: 'put', collection: 'basins', key: document.key, value: stored }])
      await session.close()
      await expectNoop(service, undefined, `/v1/basins/${BASIN}`, true)
      await service.call('PUT', '/v1/streams/s')
      const { retentionPolicy } = config.defaultStreamConfig as { retentionPolicy?: unknown }
      const { retentionPolicy: own } = await service.hw.basin(BASIN).stream('s').config()
      expect(own).toEqual(retentionPolicy ?? { ageSeconds: 604_800 })
    },
  )
})

const OTHERS = { streamCipher: null, createStreamOnAppend: false, createStreamOnRead: false }
