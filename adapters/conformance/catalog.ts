import type {
  CatalogChange,
  Collection,
  JsonValue,
  ListRange,
  StorageSession,
} from '../../src/storage/contract.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { NOW } from './blocks.ts'
import type { Cases } from './harness.ts'
import { LogWriter } from './log-writer.ts'

const COLLECTIONS: readonly Collection[] = ['basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings']

/** Every shape of JSON, with the strings and numbers that trip encoders. */
const VALUES: readonly JsonValue[] = [
  ...[null, true, false, 0, -1.5, 1e-7, 1.7976931348623157e308],
  ...[Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, '', 'text', '\u0000 in a string \u0000'],
  ...['"quotes" \\ and \n\r\t\u2028\u2029', 'é \uE000 \u{1F600} \u{10FFFF}', [], {}],
  [1, [2, [3, []]], {}],
  { a: { b: { c: [null, false, ''] } }, '': 'empty name', 'a.b': 1, $set: { $ne: 1 }, constructor: 2 },
  JSON.parse('{ "__proto__": { "own": true } }'),
]

/** Keys in the order of their UTF-8 bytes, which is neither that of UTF-16 units nor that of any language. */
const ORDERED_KEYS: readonly string[] = [
  ...['\u0000', '\u0000\u0000', '\u0000a', '\u0001', ' ', '%', '-', '/', '0', '10', '9', 'A', 'B', 'Z'],
  ...['\\', '_', 'a', 'a\u0000', 'a\u0000b', 'a ', 'a%', 'a/b', 'a_', 'aa', 'ab', 'b', 'e\u0301', 'z'],
  ...['\u007f', '\u0080', '\u00e9', '\u07ff', '\u0800', '\ud7ff', '\ue000', '\ue000a', '\ufeff', '\ufffd'],
  ...['\uffff', '\u{10000}', '\u{10000}a', '\u{1f600}', '\u{10ffff}', '\u{10ffff}\u{10ffff}'],
]

export const catalogCases: Cases = {
  async 'values are returned as they were written'(harness) {
    const session = await harness.open()
    for (const [index, value] of VALUES.entries()) {
      const key = `key-${index}`
      equal(await session.get('streams', key), undefined, 'document before')
      await session.commit([put(key, value)])
      const { version, ...document } = (await session.get('streams', key))!
      equal(document, { key, value }, 'document')
      ok(Number.isSafeInteger(version), 'a version is a safe integer')
    }
  },
  async 'a value is copied on the way in and out'(harness) {
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
    for (let i = 0; i < 2; i++) {
      damage((await session.get('streams', 'a'))?.value)
      damage((await list(session, {}))[0]?.value)
    }
  },
  async 'collections are independent'(harness) {
    const session = await harness.open()
    for (const collection of COLLECTIONS) {
      await session.commit([{ kind: 'put', collection, key: 'same', value: collection }])
    }
    await session.commit([{ kind: 'delete', collection: 'tokens', key: 'same' }])
    for (const collection of COLLECTIONS) {
      const expected = collection === 'tokens' ? undefined : collection
      equal((await session.get(collection, 'same'))?.value, expected, `get from ${collection}`)
      const listed = await session.list(collection, { prefix: '', after: '', limit: 10 })
      equal(listed[0]?.value, expected, `list of ${collection}`)
    }
  },
  async 'a put or delete without an expectation always succeeds'(harness) {
    const session = await harness.open()
    const changes: CatalogChange[] = [remove('a'), put('a', 1), put('a', 2), remove('a')]
    for (const change of changes) {
      await session.commit([change])
      const expected = change.kind === 'put' ? change.value : undefined
      equal((await session.get('streams', 'a'))?.value, expected, 'value')
    }
    await session.commit([])
  },
  async 'expecting null creates a document and never replaces one'(harness) {
    const session = await harness.open()
    await session.commit([put('a', 1, null)])
    await conflicts(session.commit([put('a', 2, null)]), 'put of a document that exists')
    equal((await session.get('streams', 'a'))?.value, 1, 'value')
    await session.commit([remove('a')])
    await session.commit([put('a', 3, null)])
    equal((await session.get('streams', 'a'))?.value, 3, 'value')
  },
  async 'expecting a version requires exactly that version'(harness) {
    const session = await harness.open()
    await session.commit([put('a', 1)])
    const first = await versionOf(session, 'a')
    await session.commit([put('a', 2, first)])
    const second = await versionOf(session, 'a')
    for (const change of [put('a', 3, first), remove('a', first), put('b', 3, second), remove('b', second)]) {
      await conflicts(session.commit([change]), JSON.stringify(change))
    }
    equal(await session.get('streams', 'a'), { key: 'a', value: 2, version: second }, 'document')
    equal(await session.get('streams', 'b'), undefined, 'document')
    await session.commit([remove('a', second)])
    equal(await session.get('streams', 'a'), undefined, 'document')
  },
  async 'a version changes with every put, and none is used again for a document that is re-created'(
    harness,
  ) {
    const session = await harness.open()
    const seen = new Set<number>()
    for (let round = 0; round < 30; round++) {
      await session.commit([put('a', 'always the same')])
      const version = await versionOf(session, 'a')
      ok(!seen.has(version), `version ${version} returned`)
      for (const stale of seen) await conflicts(session.commit([remove('a', stale)]), 'an earlier version')
      seen.add(version)
      if (round % 3 === 2) await session.commit([remove('a')])
    }
  },
  async 'a check changes nothing and conflicts unless the version matches'(harness) {
    const session = await harness.open()
    await session.commit([put('a', 1)])
    const document = await session.get('streams', 'a')
    const version = await versionOf(session, 'a')
    await session.commit([check('a', version)])
    await session.commit([check('a', version), put('c', 1)])
    equal(await session.get('streams', 'a'), document, 'document that was checked')
    equal((await session.get('streams', 'c'))?.value, 1, 'value')
    for (const failing of [check('a', version + 1), check('b', version)]) {
      await conflicts(session.commit([put('c', 2), failing]), 'commit with a check')
      await conflicts(session.commit([failing, put('c', 2)]), 'commit that begins with a check')
    }
    await session.commit([put('a', 1)])
    await conflicts(session.commit([check('a', version), put('c', 2)]), 'check of the version before')
    equal((await session.get('streams', 'c'))?.value, 1, 'value')
  },
  async 'a commit whose last expectation fails changes nothing'(harness) {
    const kept = await harness.log('kept')
    const { session } = kept
    await kept.append()
    const other = await LogWriter.create(session, 'other')
    await other.append()
    await session.commit([put('old', 1), put('gone', 1)])
    const before = await list(session, {})
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
      const deletion: CatalogChange = { kind: 'delete-log', logId: 'kept' }
      await conflicts(session.commit([deletion, last]), `deletion of a log with ${last.kind}`)
      equal(await list(session, {}), before, 'documents')
      equal(await session.head('new-log'), undefined, 'log that was to be created')
      await kept.check()
      await other.check()
    }
    await kept.append()
  },
  async 'a commit of many changes is atomic'(harness) {
    const session = await harness.open()
    const changes = Array.from({ length: 300 }, (_, i) => put(`key-${i}`, i, null))
    await session.commit(changes)
    await conflicts(session.commit([put('other', 1), ...changes]), 'the same commit again')
    const listed = await list(session, {})
    equal(listed.length, 300, 'number of documents')
    for (const { key, value } of listed) equal(key, `key-${value}`, 'key of a value')
  },
  async 'one of several concurrent commits with the same expectation succeeds'(harness) {
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

  async 'keys are listed in the order of their UTF-8 bytes'(harness) {
    const session = await harness.open()
    equal(await keys(session, {}), [], 'keys of an empty collection')
    await fill(session, ORDERED_KEYS)
    equal(await keys(session, {}), ORDERED_KEYS, 'keys')
    for (const key of ORDERED_KEYS) {
      equal((await session.get('streams', key))?.value, key, `value of ${JSON.stringify(key)}`)
    }
  },
  async 'a list contains the keys after `after`, whether that key exists or not'(harness) {
    const session = await harness.open()
    await fill(session, ORDERED_KEYS)
    for (const [index, after] of ORDERED_KEYS.entries()) {
      const expected = ORDERED_KEYS.slice(index + 1)
      equal(await keys(session, { after }), expected, `keys after ${JSON.stringify(after)}`)
    }
    await session.commit([remove('aa')])
    const expected = ORDERED_KEYS.slice(ORDERED_KEYS.indexOf('ab'))
    equal(await keys(session, { after: 'aa' }), expected, 'keys after a missing key')
  },
  async 'a list contains the keys with the literal prefix, also after a key'(harness) {
    const session = await harness.open()
    await fill(session, ORDERED_KEYS)
    const prefixes = ['', 'a', 'a\u0000', 'a%', 'a_', '%', '_', '\\', '\u0000', '\ue000', '\u{10000}']
    for (const prefix of [...prefixes, '\u{10ffff}', 'none']) {
      const withPrefix = ORDERED_KEYS.filter((key) => key.startsWith(prefix))
      equal(await keys(session, { prefix }), withPrefix, `keys with prefix ${JSON.stringify(prefix)}`)
      for (const after of ['Z', 'a', 'ab', 'b', '\u{10ffff}']) {
        const expected = withPrefix.filter((key) => ORDERED_KEYS.indexOf(key) > ORDERED_KEYS.indexOf(after))
        equal(await keys(session, { prefix, after }), expected, `keys with a prefix, after ${after}`)
      }
    }
  },
  async 'a list contains at most `limit` keys, and pages contain every key once'(harness) {
    const session = await harness.open()
    const names = Array.from({ length: 1500 }, (_, i) => `key-${String(i).padStart(4, '0')}`)
    await fill(session, [...names].reverse())
    for (const limit of [7, 500, 1500, 1501]) {
      const listed: string[] = []
      for (;;) {
        const page = await keys(session, { prefix: 'key-', after: listed.at(-1) ?? '', limit })
        ok(page.length <= limit, `a page of ${limit} has ${page.length} keys`)
        listed.push(...page)
        if (page.length < limit) break
      }
      equal(listed, names, `keys in pages of ${limit}`)
    }
  },
  async 'keys of 1,024 bytes that differ only at the end are distinct'(harness) {
    const session = await harness.open()
    const smileys = '\u{1f600}'.repeat(255)
    const long = [
      ...['a', 'b'].map((end) => 'a'.repeat(1023) + end),
      `${smileys}\u{1f600}`,
      `${smileys}\u{1f601}`,
    ]
    await fill(session, long)
    equal(await keys(session, {}), long, 'keys')
    equal(await keys(session, { prefix: long[1]! }), [long[1]], 'keys with a whole key as prefix')
    equal(await keys(session, { after: long[2]! }), [long[3]], 'keys after a long key')
    for (const key of long) equal((await session.get('streams', key))?.value, key, 'value')
  },
  async 'a list returns current values and versions and no deleted documents'(harness) {
    const session = await harness.open()
    await fill(session, ['a', 'b', 'c'])
    await session.commit([put('a', 'new'), remove('b')])
    const listed = await list(session, {})
    equal(listed, [await session.get('streams', 'a'), await session.get('streams', 'c')], 'documents')
    equal(listed[0]?.value, 'new', 'value')
  },
}

export function put(key: string, value: JsonValue, expect?: number | null): CatalogChange {
  return { kind: 'put', collection: 'streams', key, value, ...(expect === undefined ? {} : { expect }) }
}

function remove(key: string, expect?: number): CatalogChange {
  return { kind: 'delete', collection: 'streams', key, ...(expect === undefined ? {} : { expect }) }
}

function check(key: string, expect: number): CatalogChange {
  return { kind: 'check', collection: 'streams', key, expect }
}

async function versionOf(session: StorageSession, key: string): Promise<number> {
  const document = await session.get('streams', key)
  ok(document !== undefined, `there is no document ${key}`)
  return document.version
}

async function fill(session: StorageSession, names: readonly string[]): Promise<void> {
  await session.commit(names.map((key) => put(key, key)))
}

function list(session: StorageSession, range: Partial<ListRange>) {
  return session.list('streams', { prefix: '', after: '', limit: 10_000, ...range })
}

async function keys(session: StorageSession, range: Partial<ListRange>): Promise<string[]> {
  return (await list(session, range)).map(({ key }) => key)
}
