import { afterAll, describe, expect, it } from 'vitest'
import { conformanceSuite } from '../../adapters/conformance/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { serve, toNodeHandler } from '../../adapters/node/index.ts'
import { durableObject } from '../../adapters/storage/durable-object/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { postgres } from '../../adapters/storage/postgres/index.ts'
import { faultyStorage, inProcessService, virtualClock } from '../../adapters/testing/index.ts'
import { HeadwaterError, open } from '../../src/index.ts'
import { aegis } from './encryption/support.ts'

const hw = await open({ storage: memory() })
afterAll(() => hw.close())

const URL = 'postgres://localhost/app'

describe('invalid options are `invalid`, and the error names the field:', () => {
  it.each<[string, field: string, () => unknown]>([
    ['open', 'storage', () => open({} as never)],
    ['open', 'options', () => open(memory() as never)],
    ['open', 'autoCreate', () => open({ storage: memory(), autoCreate: 1 as never })],
    ['open', 'autocreate', () => open({ storage: memory(), autocreate: true } as never)],
    ['open', 'limits.openSessions', () => open({ storage: memory(), limits: { openSessions: 0 } })],
    ['open', 'trimGraceMs', () => open({ storage: memory(), trimGraceMs: Number.NaN })],
    ['open', 'locations', () => open({ storage: memory(), locations: [] })],
    ['open', 'locations', () => open({ storage: memory(), locations: ['a b'] })],
    ['open', 'locations[0].name', () => open({ storage: memory(), locations: [{ name: 1 } as never] })],
    ['open', 'ciphers', () => open({ storage: memory(), ciphers: [aegis, aegis] })],
    ['filesystem', 'directory', () => filesystem('')],
    ['filesystem', 'durability', () => filesystem('data', { durability: 'none' as never })],
    ['indexedDb', 'name', () => indexedDb(1 as never)],
    ['indexedDb', 'lowSpaceShare', () => indexedDb('a', { lowSpaceShare: 2 })],
    ['postgres', 'connectionString', () => postgres({})],
    ['postgres', 'retryMs', () => postgres({ connectionString: URL, retryMs: -1 })],
    ['postgres', 'connectionsMax', () => postgres({ connectionString: URL, connectionsMax: 0 })],
    ['postgres', 'schema', () => postgres({ connectionString: URL, schema: '' })],
    ['durableObject', 'storage', () => durableObject({} as never)],
    ['createHandler', 'hw', () => createHandler({} as never)],
    ['createHandler', 'basin', () => createHandler(hw, { basin: 'NO' })],
    ['createHandler', 'headerPrefixes', () => createHandler(hw, { headerPrefixes: [] })],
    ['createHandler', 'cors', () => createHandler(hw, { cors: ['no origin'] })],
    ['createHandler', 'limits.bodyBytes', () => createHandler(hw, { limits: { bodyBytes: -1 } })],
    [
      'createHandler',
      'limits.pendingBodyBytes',
      () => createHandler(hw, { limits: { pendingBodyBytes: 1 } }),
    ],
    ['toNodeHandler', 'limits.lingerMs', () => toNodeHandler(hw, { limits: { lingerMs: -1 } })],
    ['serve', 'port', () => serve(hw, { port: 70_000 })],
    ['serve', 'limits.headersMs', () => serve(hw, { limits: { headersMs: -1 } })],
    ['faultyStorage', 'storage', () => faultyStorage(1 as never)],
    ['faultyStorage', 'nth', () => faultyStorage(memory()).fail('append', { nth: 0 })],
    ['inProcessService', 'handler', () => inProcessService(1 as never)],
    ['virtualClock', 'now', () => virtualClock({ now: Number.NaN })],
    ['advance', 'duration', () => virtualClock().advance('soon')],
    ['conformanceSuite', 'options', () => conformanceSuite({} as never)],
  ])('%s: %s', async (_, field, call) => {
    const error = await (async () => call())().catch((thrown: unknown) => thrown)
    expect(HeadwaterError.is(error)).toBe(true)
    expect(error).toMatchObject({ code: 'invalid', field })
  })
})
