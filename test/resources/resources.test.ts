import Ajv from 'ajv'
import { describe, expect, it, onTestFinished } from 'vitest'
import { applyResources } from '../../adapters/resources/apply-resources.ts'
import { parseResources, RESOURCE_SCHEMA } from '../../adapters/resources/resource-spec.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Headwater, open } from '../../src/index.ts'

const SPEC = {
  $schema: './schema.json',
  basins: [
    {
      name: 'shop',
      config: {
        create_stream_on_append: true,
        default_stream_config: { storage_class: 'express', retention_policy: '7days' },
      },
      streams: [
        { name: 'orders', config: { retention_policy: 'infinite', timestamping: { mode: 'arrival' } } },
        { name: 'visits', config: { delete_on_empty: { min_age: '2h 30m' } } },
      ],
    },
    { name: 'bare' },
  ],
}

const YAML = `
basins:
  - name: shop
    config:
    streams:
      - name: orders
        config: { retention_policy: 1week }
`

async function engine(): Promise<Headwater> {
  const hw = await open({ storage: memory() })
  onTestFinished(() => hw.close())
  return hw
}

/** Applies a file, and returns a line for each change. */
async function applied(hw: Headwater, spec: unknown, dryRun = false): Promise<string[]> {
  const text = typeof spec === 'string' ? spec : JSON.stringify(spec)
  const lines: string[] = []
  for await (const { action, basin, stream, members } of applyResources(hw, parseResources(text), {
    dryRun,
  })) {
    lines.push(`${action} ${[basin, stream].filter(Boolean).join('/')} ${members.join()}`.trim())
  }
  return lines
}

describe('applying a file', () => {
  it('creates what is missing, with what is declared, and the second time nothing', async () => {
    const hw = await engine()
    expect(await applied(hw, SPEC)).toEqual([
      'create shop defaultStreamConfig,createStreamOnAppend',
      'create shop/orders retentionPolicy,timestamping',
      'create shop/visits deleteOnEmpty',
      'create bare',
    ])
    const shop = hw.basin('shop')
    expect(await shop.config()).toMatchObject({
      createStreamOnAppend: true,
      createStreamOnRead: false,
      defaultStreamConfig: { retentionPolicy: { ageSeconds: 604_800 } },
    })
    expect(await shop.stream('orders').config()).toMatchObject({
      retentionPolicy: 'infinite',
      timestamping: { mode: 'arrival' },
    })
    expect((await shop.stream('visits').config()).deleteOnEmpty).toEqual({ minAgeSeconds: 9_000 })
    expect(await applied(hw, SPEC)).toEqual([
      'keep shop',
      'keep shop/orders',
      'keep shop/visits',
      'keep bare',
    ])
  })

  it('changes only what is declared and differs', async () => {
    const hw = await engine()
    await hw.createBasin('shop', { createStreamOnRead: true })
    const orders = hw.basin('shop').stream('orders')
    await hw.basin('shop').createStream('orders', { timestamping: { mode: 'arrival', uncapped: true } })
    await orders.append('tea')
    expect(await applied(hw, YAML)).toEqual(['keep shop', 'reconfigure shop/orders retentionPolicy'])
    expect(await orders.config()).toMatchObject({
      retentionPolicy: { ageSeconds: 604_800 },
      timestamping: { mode: 'arrival', uncapped: true },
    })
    expect((await hw.basin('shop').config()).createStreamOnRead).toBe(true)
    expect((await orders.checkTail()).seqNum).toBe(1)
  })

  it('does nothing in a dry run, and says what it would do', async () => {
    const hw = await engine()
    const planned = await applied(hw, SPEC, true)
    expect((await hw.listBasins()).items).toEqual([])
    expect(await applied(hw, SPEC)).toEqual(planned)
  })
})

describe('a file that', () => {
  it.each([
    ['has an unknown member', { basins: [{ name: 'shop', retention: 1 }] }, 'basins/0/retention'],
    [
      'has an unknown member of a configuration',
      { basins: [{ name: 'shop', streams: [{ name: 'a', config: { retention_polcy: '1d' } }] }] },
      'basins/0/streams/0/config/retention_polcy',
    ],
    ['has a basin without a name', { basins: [{}] }, 'basins/0'],
    ['names a basin twice', { basins: [{ name: 'shop' }, { name: 'shop' }] }, 'basins/1/name'],
    [
      'names a stream twice',
      { basins: [{ name: 'shop', streams: [{ name: 'a' }, { name: 'a' }] }] },
      'basins/0/streams/1/name',
    ],
    [
      'has a duration that is none',
      { basins: [{ name: 'shop', config: { default_stream_config: { retention_policy: '7 apples' } } }] },
      'basins/0/config/default_stream_config/retention_policy',
    ],
    ['is a list', [], 'basins'],
    ['is no JSON', '{"basins": ', 'basins'],
    ['is no YAML', 'basins: [', 'basins'],
  ])('%s is refused, and the error names the place', (_, spec, field) => {
    const text = typeof spec === 'string' ? spec : JSON.stringify(spec)
    expect(() => parseResources(text)).toThrow(expect.objectContaining({ code: 'invalid', field }))
  })
})

it.each([
  ['30s', 30],
  ['2h 30m', 9_000],
  ['7days', 604_800],
  ['1week', 604_800],
  ['1M', 2_630_016],
  ['1y', 31_557_600],
])('the duration %s is %d seconds', (text, ageSeconds) => {
  const spec = { basins: [{ name: 'a', config: { default_stream_config: { retention_policy: text } } }] }
  expect(parseResources(JSON.stringify(spec)).basins[0]!.config.defaultStreamConfig).toEqual({
    retentionPolicy: { ageSeconds },
  })
})

it('the schema accepts what is parsed', () => {
  expect(new Ajv({ strict: false }).validate(RESOURCE_SCHEMA, SPEC)).toBe(true)
})
