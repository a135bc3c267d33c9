import { describe, expect, it } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { exportEntries } from '../../adapters/transfer/export-entries.ts'
import { EVERYTHING } from '../../adapters/transfer/service.ts'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import type { ResourceSet } from '../../src/model/access.ts'
import { exported, imported, KEY, NOW, openEndpoint, withStreams } from './support.ts'

const withStream = (options: Parameters<typeof withStreams>[1] = {}) => withStreams(['s'], options)
const entries = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)

describe('an export', () => {
  it('has a line for each basin, stream and record', async () => {
    const source = await withStream()
    await source
      .stream('s')
      .append([
        'text',
        { body: Uint8Array.of(0xff, 0), headers: [['n', 'v']] },
        { headers: [['n', Uint8Array.of(0xfe)]] },
        fenceRecord('me'),
      ])
    const T = source.clock.now()
    const config =
      '{"storage_class":"express","retention_policy":{"infinite":{}},"timestamping":{"mode":"client-prefer","uncapped":false},"delete_on_empty":{"min_age_secs":0}}'
    expect((await exported(source.service)).split('\n')).toEqual([
      '{"headwater_export":1,"exported_at":"2030-01-01T00:00:00Z"}',
      '{"basin":"basin-a","config":{"default_stream_config":{"storage_class":"express","retention_policy":{"infinite":{}}},"stream_cipher":null,"create_stream_on_append":false,"create_stream_on_read":false}}',
      `{"stream":"s","basin":"basin-a","config":${config},"cipher":null,"created_at":"2025-01-01T00:00:00Z","start":0,"tail":{"seq_num":4,"timestamp":${T}},"fencing_token":"me"}`,
      `{"seq_num":0,"timestamp":${T},"body":"text"}`,
      `{"seq_num":1,"timestamp":${T},"headers":[["n","v"]],"body_base64":"/wA="}`,
      `{"seq_num":2,"timestamp":${T},"headers_base64":[["bg==","/g=="]],"body":""}`,
      `{"seq_num":3,"timestamp":${T},"headers":[["","fence"]],"body":"me"}`,
      '{"stream_end":"s","records":4}',
      '{"export_end":{"basins":1,"streams":1,"records":4}}',
      '',
    ])
  })

  it('ends at the tail of its start, despite appends', { tags: ['slow'] }, async () => {
    const source = await withStream()
    await source.stream('s').append(Array.from({ length: 1000 }, (_, i) => `a${i}`))
    await source.stream('s').append(Array.from({ length: 1000 }, (_, i) => `b${i}`))
    const records: unknown[] = []
    for await (const batch of exportEntries(source.service, { filter: EVERYTHING, now: NOW })) {
      if (batch[0]!.kind !== 'record') continue
      records.push(...batch)
      await source.stream('s').append('later')
    }
    expect(records).toHaveLength(2000)
  })

  it('fails if a stream is deleted while it is exported', async () => {
    const source = await withStream()
    const thousand = Array(1000).fill('x')
    for (let i = 0; i < 3; i++) await source.stream('s').append(thousand)
    const running = exportEntries(source.service, { filter: EVERYTHING, now: NOW })
    for (let i = 0; i < 4; i++) await running.next()
    await source.stream('s').delete()
    const rest = (async () => {
      for await (const _ of running);
    })()
    await expect(rest).rejects.toThrow('stream s of basin basin-a: ')
  })

  it('leaves out the fencing token if it may only read', async () => {
    const source = await withStream()
    await source.stream('s').append(['x', fenceRecord('me'), trimRecord(3)])
    const token = await source.hw.issueAccessToken({
      id: 'reader',
      scope: {
        basins: { prefix: '' },
        streams: { prefix: '' },
        opGroups: {
          account: { read: true, write: false },
          basin: { read: true, write: false },
          stream: { read: true, write: false },
        },
      },
    })
    const reader = source.with({ token, fetch: createHandler(source.hw) })
    const text = await exported(reader)
    expect(text).not.toContain(token)
    expect(entries(text)[2]).not.toHaveProperty('fencing_token')
    const target = await openEndpoint({ kind: 'directory' })
    await imported(target.service, text)
    await expect(target.stream('s').append('x', { fencingToken: 'me' })).rejects.toMatchObject({
      fencingToken: '',
    })
  })

  it('requires the key of an encrypted stream', async () => {
    const source = await openEndpoint()
    await source.hw.createBasin('basin-a', { streamCipher: 'aes-256-gcm' })
    await source.basin.createStream('s')
    await source.basin.stream('s', { encryptionKey: KEY }).append('secret')
    await expect(exported(source.with({ encryptionKey: undefined }))).rejects.toThrow(
      'stream s of basin basin-a is encrypted; a key is required',
    )
    const text = await exported(source.service)
    expect(text).toContain('"body":"secret"')
    expect(text).not.toContain(KEY)
  })

  it('truncates a long message of a service', async () => {
    const body = JSON.stringify({ code: 'x'.repeat(5_000_000), message: 'y'.repeat(5_000_000) })
    const source = await openEndpoint({
      wrapFetch: () => async () =>
        new Response(body, { status: 400, headers: { 'content-type': 'application/json' } }),
    })
    const error = await exported(source.service).catch(String)
    expect(error).toContain('y'.repeat(1000))
    expect(error.length).toBeLessThan(3000)
  })

  it.each([
    [{ prefix: '' }, { prefix: '' }, ['a', 'ab', 'b', 'a', 'b']],
    [{ exact: 'basin-a' }, { prefix: '' }, ['a', 'ab', 'b']],
    [{ prefix: 'basin' }, { prefix: 'a' }, ['a', 'ab', 'a']],
    [{ prefix: '' }, { exact: 'a' }, ['a', 'a']],
    [{ prefix: 'none' }, { prefix: '' }, []],
  ] satisfies [ResourceSet, ResourceSet, string[]][])(
    'matches basins %j and streams %j',
    async (basins, streams, expected) => {
      const { hw, service } = await openEndpoint()
      for (const [basin, names] of [
        ['basin-a', ['a', 'ab', 'b']],
        ['basin-ab', ['a', 'b']],
      ] as const) {
        await hw.createBasin(basin)
        for (const name of names) await hw.basin(basin).createStream(name)
      }
      const found = entries(await exported(service, { basins, streams })).flatMap(
        ({ stream }) => stream ?? [],
      )
      expect(found).toEqual(expected)
    },
  )

  it('lists all pages of names', async () => {
    const { hw, service } = await openEndpoint({
      wrapFetch: (fetch) => (request) => {
        const url = new URL(request.url)
        if (url.searchParams.has('limit')) url.searchParams.set('limit', '2')
        return fetch(new Request(url, request))
      },
    })
    for (const basin of ['basin-a', 'basin-b', 'basin-c']) await hw.createBasin(basin)
    for (let i = 0; i < 5; i++) await hw.basin('basin-c').createStream(`s${i}`)
    const totals = { basins: 3, streams: 5, records: 0 }
    expect(entries(await exported(service)).at(-1)).toEqual({ export_end: totals })
  })

  it.each([
    ['that is endless', { streams: [{ name: 'a', created_at: '2030-01-01T00:00:00Z' }], has_more: true }],
    ['without members', {}],
    ['without names', { streams: [{}], has_more: false }],
  ])('rejects a list %s', async (_, page) => {
    const source = await withStream({
      wrapFetch: (fetch) => async (request) =>
        new URL(request.url).pathname === '/v1/streams' ? Response.json(page) : fetch(request),
    })
    await expect(exported(source.service)).rejects.toThrow('the list of streams of basin basin-a')
  })
})
