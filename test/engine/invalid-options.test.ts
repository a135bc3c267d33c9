import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { createDurableStreamsHandler, serveDurableStreams } from '../../adapters/durable-streams/index.ts'
import { fold } from '../../adapters/fold/index.ts'
import { createHandler, openOnce, serveFetchEvents } from '../../adapters/http/index.ts'
import { serve, toNodeHandler } from '../../adapters/node/index.ts'
import { filesystem, verifyDirectory } from '../../adapters/storage/filesystem/index.ts'
import { orderedKeyValueStorage } from '../../adapters/storage/index.ts'
import { indexedDb, trimWhenLow } from '../../adapters/storage/indexeddb/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { objectStorage } from '../../adapters/storage/s3/index.ts'
import { durableObject } from '../../adapters/storage/sqlite/durable-object.ts'
import { sqlite } from '../../adapters/storage/sqlite/index.ts'
import { mirror, outbox, syncedBasin, syncedStream } from '../../adapters/sync/index.ts'
import {
  faultyHandler,
  faultyStorage,
  inProcessService,
  seededRandom,
  virtualClock,
} from '../../adapters/testing/index.ts'
import { HeadwaterError, open } from '../../src/index.ts'
import { aegis } from './encryption/support.ts'

const hw = await open({ storage: memory() })
afterAll(() => hw.close())
const stream = hw.basin('basin').stream('stream')
const other = hw.basin('basin').stream('other')

const ROOT = resolve(import.meta.dirname, '../..')
const URL = 'postgres://localhost/app'

/** What needs a page, and parts for storages, which the engine calls. */
const NOT_HERE = [
  ...['/console/', '/react/', '/vue/', '/svelte/', '/solid/', '/browser/', 'adapters/storage/index.ts'],
]
/** Functions without options. */
const OTHERS = [
  ...['closeRecord', 'fenceRecord', 'trimRecord', 'memory', 'aegis256', 'usageMetrics', 'sqliteStorage'],
]

const CALLS: readonly [call: string, field: string, () => unknown][] = [
  ['open', 'storage', () => open({} as never)],
  ['open', 'options', () => open(memory() as never)],
  ['open', 'autoCreate', () => open({ storage: memory(), autoCreate: 1 as never })],
  ['open', 'autocreate', () => open({ storage: memory(), autocreate: true } as never)],
  ['open', 'limits.openSessions', () => open({ storage: memory(), limits: { openSessions: 0 } })],
  ['open', 'trimGraceMs', () => open({ storage: memory(), trimGraceMs: Number.NaN })],
  ['open', 'ciphers', () => open({ storage: memory(), ciphers: [aegis, aegis] })],
  ['filesystem', 'directory', () => filesystem('')],
  ['filesystem', 'durability', () => filesystem('data', { durability: 'none' as never })],
  ['indexedDb', 'name', () => indexedDb(1 as never)],
  ['indexedDb', 'lowSpaceShare', () => indexedDb('a', { lowSpaceShare: 2 })],
  ['objectStorage', 'bucket', () => objectStorage({ bucket: 'Not A Bucket' })],
  ['objectStorage', 'cacheBytes', () => objectStorage({ bucket: 'data', cacheBytes: -1 })],
  ['postgres', 'connectionString', () => postgres({})],
  ['postgres', 'retryMs', () => postgres({ connectionString: URL, retryMs: -1 })],
  ['postgres', 'connectionsMax', () => postgres({ connectionString: URL, connectionsMax: 0 })],
  ['postgres', 'schema', () => postgres({ connectionString: URL, schema: '' })],
  ['durableObject', 'storage', () => durableObject({} as never)],
  ['sqlite', 'database', () => sqlite('')],
  ['createHandler', 'hw', () => createHandler({} as never)],
  ['createHandler', 'basin', () => createHandler(hw, { basin: 'NO' })],
  ['createHandler', 'cors', () => createHandler(hw, { cors: ['no origin'] })],
  ['createHandler', 'limits.bodyBytes', () => createHandler(hw, { limits: { bodyBytes: -1 } })],
  ['createHandler', 'limits.pendingBodyBytes', () => createHandler(hw, { limits: { pendingBodyBytes: 1 } })],
  ['toNodeHandler', 'limits.lingerMs', () => toNodeHandler(hw, { limits: { lingerMs: -1 } })],
  ['serve', 'port', () => serve(hw, { port: 70_000 })],
  ['toNodeHandler', 'limits.lingerMs', () => toNodeHandler(hw, { limits: { lingerMs: 2 ** 31 } })],
  ['serve', 'limits.headersMs', () => serve(hw, { limits: { headersMs: -1 } })],
  ['serve', 'limits.headersMs', () => serve(hw, { limits: { headersMs: Number.POSITIVE_INFINITY } })],
  ['serve', 'limits.handshakeMs', () => serve(hw, { limits: { handshakeMs: 0 } })],
  ['serve', 'limits.handshakeMs', () => serve(hw, { limits: { handshakeMs: 2 ** 31 } })],
  ['faultyStorage', 'storage', () => faultyStorage(1 as never)],
  ['faultyStorage', 'nth', () => faultyStorage(memory()).fail('append', { nth: 0 })],
  ['inProcessService', 'handler', () => inProcessService(1 as never)],
  ['faultyHandler', 'handler', () => faultyHandler(1 as never)],
  ['serveFetchEvents', 'openEngine', () => serveFetchEvents(hw as never)],
  ['serveDurableStreams', 'openEngine', () => serveDurableStreams(hw as never, { basin: 'basin' })],
  ['openOnce', 'openEngine', () => openOnce(hw as never)],
  ['seededRandom', 'seed', () => seededRandom(0.5)],
  ['virtualClock', 'now', () => virtualClock({ now: Number.NaN })],
  ['advance', 'duration', () => virtualClock().advance('soon')],
  ['conformanceSuite', 'options', () => conformanceSuite({} as never)],
  ['connect', 'url', () => connect({} as never)],
  ['connect', 'tokn', () => connect({ url: 'http://localhost', tokn: 'x' } as never)],
  ['createDurableStreamsHandler', 'hw', () => createDurableStreamsHandler({} as never, { basin: 'basin' })],
  ['mirror', 'local', () => mirror(stream, stream)],
  ['mirror', 'form', () => mirror(stream, other, { form: {} } as never)],
  ['outbox', 'recordsMax', () => outbox(stream, other, { recordsMax: -1 })],
  ['syncedStream', 'recordsMax', () => syncedStream(other, stream, { recordsMax: -1 })],
  [
    'syncedBasin',
    'connectionsMax',
    () => syncedBasin({ remote: hw.basin('basin'), local: hw.basin('other'), connectionsMax: 0 }),
  ],
  ['fold', 'reduce', () => fold(stream, { initial: 0, version: 1 } as never)],
  ['trimWhenLow', 'freeShare', () => trimWhenLow(indexedDb('a'), { streams: () => [], freeShare: 2 })],
  ['verifyDirectory', 'fast', () => verifyDirectory('data', { fast: true } as never)],
  ['orderedKeyValueStorage', 'options', () => orderedKeyValueStorage({} as never)],
  ['producer', 'lingerMs', () => stream.producer({ lingerMs: -1 })],
  ['json', 'schema', () => stream.json({} as never)],
  ['read', 'seqnum', () => stream.read({ seqnum: 0 } as never).toArray()],
  ['basin', 'autocreate', () => hw.basin('basin', { autocreate: true } as never)],
]

describe('invalid options are `invalid`, and the error names the field:', () => {
  it.each(CALLS)('%s: %s', async (_, field, call) => {
    const error = await (async () => call())().catch((thrown: unknown) => thrown)
    expect(HeadwaterError.is(error)).toBe(true)
    expect(error).toMatchObject({ code: 'invalid', field })
  })
})

it('the calls are all that the package exports', async () => {
  const { exports } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
  const names = new Set<string>()
  for (const { types } of Object.values<{ types?: string }>(exports)) {
    const source = types?.replace('./dist/types', ROOT).replace(/\.d\.ts$/, '.ts')
    if (source === undefined || NOT_HERE.some((part) => source.includes(part))) continue
    for (const [name, value] of Object.entries(await import(source))) {
      const isClass = /^(class|[A-Z])/.test(name) || String(value).startsWith('class')
      if (typeof value === 'function' && !isClass) names.add(name)
    }
  }
  const listed = [...CALLS.map(([call]) => call), ...OTHERS]
  expect([...names].filter((name) => !listed.includes(name))).toEqual([])
})
