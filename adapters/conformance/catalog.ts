import type { CatalogChange, Collection, JsonValue, StorageSession } from '../../src/storage/contract.ts'
import { type ConformanceCase, conflicts, equal, ok, winners } from './harness.ts'
import { LogWriter, NOW } from './log-writer.ts'

const COLLECTIONS: readonly Collection[] = ['basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings']

/** Every shape of JSON, with the strings and numbers that trip encoders. */
const VALUES: readonly JsonValue[] = [
  null,
  true,
  false,
  0,
  -1.5,
  1e-7,
  1.7976931348623157e308,
  Number.MAX_SAFE_INTEGER,
  Number.MIN_SAFE_INTEGER,
  '',
  'text',
  '\u0000 in a string \u0000',
  '"quotes" \\ and \n\r\t\u2028\u2029',
  'é \uE000 \u{1F600} \u{10FFFF}',
  [],
  {},
  [1, [2, [3, []]], {}],
  { a: { b: { c: [null, false, ''] } }, '': 'empty name', 'a.b': 1, $set: { $ne: 1 }, constructor: 2 },
  JSON.parse('{ "__proto__": { "own": true } }'),
]

export const catalogCases: readonly ConformanceCase[] = [
  {
    title: 'a document that was never written does not exist',
    async run(harness) {
      const session = await harness.open()
      for (const collection of COLLECTIONS) equal(await session.get(collection, 'a'), undefined, collection)
    },
  },
  {
    title: 'values are returned as they were written',
    async run(harness) {
      const session = await harness.open()
      for (const [index, value] of VALUES.entries()) {
        const key = `key-${index}`
        await session.commit([put(key, value)])
        const document = await session.get('streams', key)
        equal(document?.key, key, 'key')
        equal(document?.value, value, 'value')
        ok(Number.isSafeInteger(document?.version), 'a version is a safe integer')
      }
    },
  },
  {
    title: 'a value is copied on the way in and out',
    async run(harness) {
      const session = await harness.open()
      const given = { list: [1], inner: { name: 'before' } }
      await session.commit([put('a', given)])
      given.list.push(2)
      given.inner.name = 'after'
      const damage = (value: JsonValue | undefined): void => {
        equal(value, { list: [1], inner: { name: 'before' } }, 'value')
        ;(value as typeof given).list.push(3)
        ;(value as typeof given).inner.name = 'damaged'
      }
      const everything = { prefix: '', after: '', limit: 10 }
      for (let i = 0; i < 2; i++) {
        damage((await session.get('streams', 'a'))?.value)
        damage((await session.list('streams', everything))[0]?.value)
      }
    },
  },
  {
    title: 'collections are independent',
    async run(harness) {
      const session = await harness.open()
      for (const collection of COLLECTIONS) {
        await session.commit([{ kind: 'put', collection, key: 'same', value: collection }])
      }
      await session.commit([{ kind: 'delete', collection: 'tokens', key: 'same' }])
      for (const collection of COLLECTIONS) {
        const expected = collection === 'tokens' ? undefined : collection
        equal((await session.get(collection, 'same'))?.value, expected, `get from ${collection}`)
        const listed = await session.list(collection, { prefix: '', after: '', limit: 10 })
        equal(
          listed.map(({ value }) => value),
          expected === undefined ? [] : [expected],
          `list of ${collection}`,
        )
      }
    },
  },
  {
    title: 'a put or delete without an expectation always succeeds',
    async run(harness) {
      const session = await harness.open()
      await session.commit([remove('a')])
      await session.commit([put('a', 1)])
      await session.commit([put('a', 2)])
      equal((await session.get('streams', 'a'))?.value, 2, 'value')
      await session.commit([remove('a')])
      equal(await session.get('streams', 'a'), undefined, 'document')
      await session.commit([])
    },
  },
  {
    title: 'expecting null creates a document and never replaces one',
    async run(harness) {
      const session = await harness.open()
      await session.commit([put('a', 1, null)])
      await conflicts(session.commit([put('a', 2, null)]), 'put of a document that exists')
      equal((await session.get('streams', 'a'))?.value, 1, 'value')
      await session.commit([remove('a')])
      await session.commit([put('a', 3, null)])
      equal((await session.get('streams', 'a'))?.value, 3, 'value')
    },
  },
  {
    title: 'expecting a version requires exactly that version',
    async run(harness) {
      const session = await harness.open()
      await session.commit([put('a', 1)])
      const first = await versionOf(session, 'a')
      await session.commit([put('a', 2, first)])
      const second = await versionOf(session, 'a')
      await conflicts(session.commit([put('a', 3, first)]), 'put with the version before')
      await conflicts(session.commit([remove('a', first)]), 'delete with the version before')
      await conflicts(session.commit([put('b', 3, second)]), 'put with a version where nothing is')
      await conflicts(session.commit([remove('b', second)]), 'delete with a version where nothing is')
      equal(await session.get('streams', 'a'), { key: 'a', value: 2, version: second }, 'document')
      equal(await session.get('streams', 'b'), undefined, 'document')
      await session.commit([remove('a', second)])
      equal(await session.get('streams', 'a'), undefined, 'document')
    },
  },
  {
    title: 'a version changes with every put and is never reused',
    async run(harness) {
      const session = await harness.open()
      const seen = new Set<number>()
      for (let round = 0; round < 30; round++) {
        await session.commit([put('a', 'always the same')])
        const version = await versionOf(session, 'a')
        ok(!seen.has(version), `version ${version} returned`)
        seen.add(version)
        if (round % 3 === 2) await session.commit([remove('a')])
      }
    },
  },
  {
    title: 'a version from before a deletion does not match the recreated document',
    async run(harness) {
      const session = await harness.open()
      await session.commit([put('a', 1)])
      const stale = await versionOf(session, 'a')
      await session.commit([remove('a')])
      await session.commit([put('a', 1)])
      await conflicts(session.commit([put('a', 2, stale)]), 'put')
      await conflicts(session.commit([remove('a', stale)]), 'delete')
      equal((await session.get('streams', 'a'))?.value, 1, 'value')
    },
  },
  {
    title: 'a check changes nothing and conflicts unless the version matches',
    async run(harness) {
      const session = await harness.open()
      await session.commit([put('a', 1)])
      const document = await session.get('streams', 'a')
      const version = await versionOf(session, 'a')
      await session.commit([check('a', version), check('b', null)])
      await session.commit([check('a', version), put('c', 1)])
      equal(await session.get('streams', 'a'), document, 'document that was checked')
      equal((await session.get('streams', 'c'))?.value, 1, 'value')
      for (const failing of [check('a', version + 1), check('a', null), check('b', version)]) {
        await conflicts(session.commit([put('c', 2), failing]), 'commit with a check')
        await conflicts(session.commit([failing, put('c', 2)]), 'commit that begins with a check')
      }
      await session.commit([put('a', 1)])
      await conflicts(session.commit([check('a', version), put('c', 2)]), 'check of the version before')
      equal((await session.get('streams', 'c'))?.value, 1, 'value')
    },
  },
  {
    title: 'a commit whose last expectation fails changes nothing',
    async run(harness) {
      const session = await harness.open()
      const kept = await LogWriter.create(session, 'kept')
      await kept.append()
      await (await LogWriter.create(session, 'other')).append()
      await session.commit([put('old', 1), put('gone', 1)])
      const before = await session.get('streams', 'old')
      const changes: CatalogChange[] = [
        put('new', 1),
        put('old', 2),
        remove('gone'),
        { kind: 'create-log', logId: 'new-log', epoch: 1, createdAt: NOW },
        { kind: 'set-epoch', logId: 'kept', epoch: 9 },
      ]
      const failing: CatalogChange[] = [
        put('last', 1, 12_345),
        remove('last', 12_345),
        put('gone-not', 1, 0),
        check('absent', 12_345),
        { kind: 'delete-log', logId: 'other', expectSeqNum: 0 },
        { kind: 'create-log', logId: 'other', epoch: 1, createdAt: NOW },
        { kind: 'set-epoch', logId: 'missing', epoch: 2 },
      ]
      for (const last of failing) {
        await conflicts(session.commit([...changes, last]), `commit that ends with ${last.kind}`)
        await conflicts(
          session.commit([
            { kind: 'delete-log', logId: 'kept' },
            { kind: 'set-epoch', logId: 'missing', epoch: 2 },
          ]),
          'commit that deletes a log',
        )
        equal(await session.get('streams', 'old'), before, 'document that was to be replaced')
        equal((await session.get('streams', 'gone'))?.value, 1, 'document that was to be deleted')
        for (const key of ['new', 'last', 'gone-not'])
          equal(await session.get('streams', key), undefined, key)
        equal(await session.head('new-log'), undefined, 'log that was to be created')
        equal(await session.head('kept'), kept.head, 'log that was to be changed')
      }
      await kept.append()
    },
  },
  {
    title: 'a commit of many changes is atomic',
    async run(harness) {
      const session = await harness.open()
      const changes = Array.from({ length: 300 }, (_, i) => put(`key-${i}`, i, null))
      await session.commit(changes)
      await conflicts(session.commit([put('other', 1), ...changes]), 'the same commit again')
      const listed = await session.list('streams', { prefix: '', after: '', limit: 1000 })
      equal(listed.length, 300, 'number of documents')
      for (const { key, value } of listed) equal(key, `key-${value}`, 'key of a value')
    },
  },
  {
    title: 'one of several concurrent commits with the same expectation succeeds',
    async run(harness) {
      const session = await harness.open()
      for (let round = 0; round < 10; round++) {
        const expect = round === 0 ? null : await versionOf(session, 'a')
        const attempts = [0, 1, 2, 3].map((i) =>
          session.commit([put('a', `${round}/${i}`, expect), put(`by-${i}`, round)]),
        )
        const won = await winners(attempts, 'commit')
        equal(won.length, 1, 'number of commits that were made')
        equal((await session.get('streams', 'a'))?.value, `${round}/${won[0]}`, 'value')
        for (const i of [0, 1, 2, 3]) {
          const written = (await session.get('streams', `by-${i}`))?.value === round
          equal(written, i === won[0], `whether commit ${i} wrote its other document`)
        }
      }
    },
  },
]

export function put(key: string, value: JsonValue, expect?: number | null): CatalogChange {
  return { kind: 'put', collection: 'streams', key, value, ...(expect === undefined ? {} : { expect }) }
}

function remove(key: string, expect?: number): CatalogChange {
  return { kind: 'delete', collection: 'streams', key, ...(expect === undefined ? {} : { expect }) }
}

function check(key: string, expect: number | null): CatalogChange {
  return { kind: 'check', collection: 'streams', key, expect }
}

async function versionOf(session: StorageSession, key: string): Promise<number> {
  const document = await session.get('streams', key)
  ok(document !== undefined, `there is no document ${key}`)
  return document.version
}
