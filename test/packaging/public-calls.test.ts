// @module-tag slow

import { describe, expect, it } from 'vitest'
import { packageEntries, publicApi } from './public-calls.ts'

/** Calls without a signal, each with the reason. `Type.*` stands for all members of a type. */
const WITHOUT_SIGNAL: Readonly<Record<string, string>> = {
  'ReadSession.*': 'The read takes the signal: `stream.read(query, { signal })`.',
  'SyncedRead.*': 'The read takes the signal: `synced.read(query, { signal })`.',
  'StorageSession.*': 'The engine calls a storage, and a change that has begun must be seen to its end.',
  'Storage.open': 'The engine calls a storage.',
  'IndexedDbStorage.open': 'The engine calls a storage.',
  'FaultyStorage.open': 'The engine calls a storage.',
  'OrderedKeyValueStore.*': 'The kit for storages calls it, on behalf of the engine.',
  'OrderedKeyValueOptions.open': 'The kit for storages calls it, on behalf of the engine.',
  'ObjectStorage.sync': 'The interface of the platform, which the storage calls.',
  'PostgresClient.query': 'The interface of `pg`, which the storage calls.',
  'SerialQueue.*': 'A part for storages, which have no signals.',
  'GroupCommit.add': 'A part for storages, which have no signals.',
  'SessionCalls.*': 'A part for storages, which have no signals.',
  trackExternalWork: 'A part for storages: it wraps work that has begun.',
  macrotask: 'It ends in the next turn.',
  'CipherSuite.*': 'The engine calls a cipher, for a time that the size of a record bounds.',
  'UsageMeter.*': 'The engine calls its module for usage.',
  'MetricsService.*': 'The engine calls its module for usage, and takes the signal of `metrics`.',
  serve: 'It ends as soon as the system has given it the port, or not.',
  aegis256: 'It loads code, as `import()` does.',
  'IndexedDbStorage.usage': 'A question to the browser, which takes no signal.',
  'IndexedDbStorage.persist': 'A question to the browser, which takes no signal.',
  'TrimmableStream.*': 'What `trimWhenLow` calls of a stream.',
  'TrimWhenLowOptions.streams': '`trimWhenLow` calls it, and returns what stops it.',
  'ConnectOptions.getToken': 'The client calls it for calls that take a signal.',
  'FaultyStorage.crash': 'For tests, in which it ends at once.',
  'VirtualClock.*': 'For tests: it waits for what is due, and no longer.',
  'ConformanceFixture.*': 'The test suite for storages calls it.',
  'ConformanceOptions.make': 'The test suite for storages calls it.',
  'ConformanceTest.run': 'A test, which its runner stops.',
}

/** Types with `close` that are no resources, or that only the engine closes. */
const WITHOUT_DISPOSE: Readonly<Record<string, string>> = {
  Stream: '`close` changes the stream: it ends it for good.',
  EngineStream: '`close` changes the stream: it ends it for good.',
  JsonStream: '`close` changes the stream: it ends it for good.',
  StorageSession: 'The engine closes it.',
  UsageMeter: 'The engine closes it.',
  OrderedKeyValueStore: 'The kit for storages closes it.',
  SessionCalls: 'A part for storages: `close` closes the session of the storage.',
}

/** Members of a stream that its view for JSON values does not have. */
const NOT_OF_JSON_STREAMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['name', 'basinName', 'config', 'reconfigure', 'delete', 'exists', 'metrics'].map((member) => [
      member,
      'It is about the stream as a whole.',
    ]),
  ),
  json: 'It makes the view.',
}

/** How many names `headwater` may export. */
const NAMES_MAX = 65
const DISPOSE = ['Symbol.asyncDispose', 'Symbol.dispose']
const { exported, calls, types } = publicApi(packageEntries())

const isListed = (list: Readonly<Record<string, string>>, name: string): boolean =>
  name in list || name.replace(/\..*/, '.*') in list

describe('the public API', () => {
  it('is walked', () => {
    expect(types.length).toBeGreaterThan(150)
    const found = new Map(calls.map((call) => [call.name, call]))
    const shown = { isAsync: true, takesSignal: true }
    for (const name of ['Stream.append', 'Engine.close', 'connect', 'JsonStream.append', 'Fold.close']) {
      expect(found.get(name), name).toMatchObject(shown)
    }
    expect(found.get('Headwater.closing')).toBeUndefined()
    expect(types.find(({ name }) => name === 'Producer')?.members).toContain('Symbol.asyncDispose')
  })

  it('has few names in `headwater`, of which four are those of authorization', () => {
    const [names] = exported
    expect(names!.length).toBeLessThanOrEqual(NAMES_MAX)
    const isAboutAccess = (name: string) => /Access|Operation|Permi|Scope|Token|Resource|Holder/.test(name)
    const nouns = ['AccessScope', 'AccessTokenInfo', 'AccessTokenInput', 'Operation']
    expect(names!.filter(isAboutAccess).sort()).toEqual(nouns)
    expect(names).toContain('OPERATIONS')
  })

  it('has one suffix for limits, and milliseconds but for what is counted for Prometheus', () => {
    const members = types.flatMap(({ members }) => members)
    expect(members.filter((name) => /^(max|min)[A-Z]/.test(name))).toEqual([])
    const inSeconds = members.filter((name) => /(Seconds|Minutes|Hours|Days)$/.test(name))
    expect(inSeconds.sort()).toEqual(['appendAckSeconds', 'appendPermitSeconds'])
  })

  it('has every member that handles records in the JSON view, except for those listed', () => {
    const membersOf = (type: string) => types.find(({ name }) => name === type)!.members
    const missing = membersOf('Stream').filter((name) => !membersOf('JsonStream').includes(name))
    expect(missing.sort()).toEqual(Object.keys(NOT_OF_JSON_STREAMS).sort())
  })

  it('takes a signal in every asynchronous call', () => {
    const without = calls.filter(({ name, isAsync, takesSignal }) => {
      return isAsync && !takesSignal && !DISPOSE.some((symbol) => name.endsWith(`.${symbol}`))
    })
    expect(without.map(({ name }) => name).filter((name) => !isListed(WITHOUT_SIGNAL, name))).toEqual([])
    const names = without.map(({ name }) => name)
    const unneeded = Object.keys(WITHOUT_SIGNAL).filter(
      (listed) => !names.some((name) => isListed({ [listed]: '' }, name)),
    )
    expect(unneeded).toEqual([])
  })

  it('can be used with `await using` wherever there is a `close`', () => {
    const without = types
      .filter(({ members }) => members.includes('close') && !members.some((name) => DISPOSE.includes(name)))
      .map(({ name }) => name)
    expect(without.sort()).toEqual(Object.keys(WITHOUT_DISPOSE).sort())
  })
})
