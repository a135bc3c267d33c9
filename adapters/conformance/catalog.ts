import type { CatalogChange, Collection, JsonValue, StorageSession } from '../../src/storage/contract.ts'
import { conflicts, equal, ok, winners } from './assertions.ts'
import { NOW } from './blocks.ts'
import type { Cases } from './harness.ts'
import { LogWriter, reclaimAll } from './log-writer.ts'

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
/** Prefixes of keys, wildcards of databases among them. */
const PREFIXES = [
  ...['', 'a', 'a\u0000', 'a%', 'a_', '%', '_', '\\', '\u0000', '\ue000', '\u{10000}', 'none'],
  '\u{10ffff}\u{10ffff}',
]

export const catalogCases: Cases = {
  async 'values are returned as they were written, in each collection'(harness) {
    const session = await harness.open()
    for (const [index, value] of VALUES.entries()) {
      const key = `key-${index}`
      const collection = COLLECTIONS[index % COLLECTIONS.length]!
      equal(await session.get(collection, key), undefined, 'document before')
      await session.commit([{ kind: 'put', collection, key, value }])
      const { version, ...document } = (await session.get(collection, key))!
      equal(document, { key, value }, 'document')
      ok(Number.isSafeInteger(version), 'a version is a safe integer')
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
      equal((await session.list(collection, EVERYTHING))[0]?.value, expected, `list of ${collection}`)
    }
  },
  async 'a value is copied on the way in and out'(harness) {
    const session = await harness.open()
    const given = { list: [1], inner: { name: 'before' } }
    const damage = (value: JsonValue | undefined): void => {
      equal(value, { list: [1], inner: { name: 'before' } }, 'value')
      ;(value as typeof given).list.push(3)
      ;(value as typeof given).inner.name = 'damaged'
    }
    await session.commit([put('a', given)])
    damage(given)
    for (let i = 0; i < 2; i++) {
      damage((await session.get('streams', 'a'))?.value)
      damage((await session.list('streams', EVERYTHING))[0]?.value)
    }
  },
  async 'a change applies if its expectation holds, and conflicts otherwise'(harness) {
    const session = await harness.open()
    await session.commit([])
    await session.commit([put('other', 0), put('a', 'first')])
    const stale = await versionOf(session, 'a')
    for (const before of [undefined, 'before']) {
      for (const expectation of ['none', 'absent', 'current', 'stale', 'of another'] as const) {
        for (const kind of ['put', 'delete', 'check'] as const) {
          await session.commit([before === undefined ? remove('a') : put('a', before)])
          const current = (await session.get('streams', 'a'))?.version ?? null
          const ofOther = await versionOf(session, 'other')
          const expect = { none: undefined, absent: null, current, stale, 'of another': ofOther }[expectation]
          // The contract has no such change.
          if (kind !== 'put' && (expect === null || (kind === 'check' && expect === undefined))) continue
          const description = `${kind} of ${before} that expects the version: ${expectation}`
          const holds = expect === undefined || expect === current
          const change = {
            put: put('a', 'after', expect),
            delete: remove('a', expect!),
            check: check('a', expect!),
          }
          const commit = session.commit([change[kind], put('other', description)])
          await (holds ? commit : conflicts(commit, description))
          const after = { put: 'after', delete: undefined, check: before }[kind]
          equal(await valueAt(session, 'a'), holds ? after : before, description)
          equal((await valueAt(session, 'other')) === description, holds, `${description}, and a put`)
        }
      }
    }
  },
  async 'a resolved commit is visible to every session, and no version is used twice'(harness) {
    const [first, second] = [await harness.open(), await harness.other()]
    const seen = new Set<number>()
    for (let round = 0; round < 30; round++) {
      const [author, other] = round % 2 === 0 ? [first, second] : [second, first]
      await author.commit([put('a', 'always the same')])
      const version = await versionOf(other, 'a')
      const document = { key: 'a', value: 'always the same', version }
      equal(await other.list('streams', EVERYTHING), [document], 'list')
      ok(!seen.has(version), `version ${version} returned`)
      for (const stale of seen) await conflicts(author.commit([remove('a', stale)]), 'an earlier version')
      seen.add(version)
      if (round % 3 !== 2) continue
      await author.commit([remove('a')])
      equal(await other.get('streams', 'a'), undefined, 'document that was deleted')
    }
  },
  async 'a commit whose last expectation fails changes nothing'(harness) {
    const kept = await harness.log('kept')
    const { session } = kept
    await kept.append({ expiresAt: NOW })
    const other = await LogWriter.create(session, 'other')
    await other.append()
    await session.commit([put('old', 1), put('gone', 1)])
    const before = await session.list('streams', EVERYTHING)
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
      equal(await session.list('streams', EVERYTHING), before, 'documents')
      equal(await session.head('new-log'), undefined, 'log that was to be created')
      await kept.check()
      await other.check()
    }
    await kept.append()
    await reclaimAll(session, { now: NOW })
    equal(await kept.records(), [1], 'records of a log whose deletion failed, once the first have expired')
  },
  async 'one of several concurrent commits with the same expectation succeeds completely'(harness) {
    const [first, second] = [await harness.open(), await harness.other()]
    for (let round = 0; round < 20; round++) {
      const expect = round === 0 ? null : await versionOf(first, 'a')
      const logId = `log-${round}`
      const createsLog = round % 2 === 1
      const attempts = [first, second, second].map((session, i) =>
        session.commit([
          put(`by-${i}`, round),
          put('a', `${round}/${i}`, expect),
          // What is expected of logs would otherwise hide that nothing is expected of documents any more.
          ...(createsLog ? [{ kind: 'create-log', logId, epoch: i + 1, createdAt: NOW } as const] : []),
        ]),
      )
      const won = await winners(attempts, 'commit')
      equal(won.length, 1, 'number of commits that were made')
      for (const session of [first, second]) {
        equal(await valueAt(session, 'a'), `${round}/${won[0]}`, 'value')
        equal((await session.head(logId))?.epoch, createsLog ? won[0]! + 1 : undefined, 'epoch of the log')
        for (const i of [0, 1, 2]) {
          const wrote = (await valueAt(session, `by-${i}`)) === round
          equal(wrote, i === won[0], `whether commit ${i} wrote its other document`)
        }
      }
    }
  },
  async 'a list has the keys with a literal prefix after a key, in the order of their UTF-8 bytes'(harness) {
    const session = await harness.open()
    equal(await keys(session), [], 'keys of an empty collection')
    await session.commit([...ORDERED_KEYS].reverse().map((key) => put(key, key)))
    for (const key of ORDERED_KEYS) equal(await valueAt(session, key), key, `value of ${JSON.stringify(key)}`)
    for (const [index, after] of ['', ...ORDERED_KEYS].entries()) {
      for (const prefix of PREFIXES) {
        const expected = ORDERED_KEYS.slice(index).filter((key) => key.startsWith(prefix))
        const description = `keys with prefix ${JSON.stringify(prefix)} after ${JSON.stringify(after)}`
        equal(await keys(session, prefix, after), expected, description)
      }
    }
  },
  async 'a list contains at most `limit` keys, and pages contain every key of a large commit once'(harness) {
    const session = await harness.open()
    const names = Array.from({ length: 1500 }, (_, i) => `key-${String(i).padStart(4, '0')}`)
    const changes = [...names].reverse().map((key) => put(key, key, null))
    await session.commit(changes)
    await conflicts(session.commit([put('other', 1), ...changes]), 'the same commit again')
    equal(await session.get('streams', 'other'), undefined, 'document of a commit that conflicts')
    for (const limit of [7, 500, 1500, 1501]) {
      const listed: string[] = []
      for (;;) {
        const page = await keys(session, 'key-', listed.at(-1), limit)
        ok(page.length <= limit, `a page of ${limit} has ${page.length} keys`)
        listed.push(...page)
        if (page.length < limit) break
      }
      equal(listed, names, `keys in pages of ${limit}`)
    }
  },
  async 'keys of 1,024 bytes that differ only at the end are distinct'(harness) {
    const session = await harness.open()
    const long = [
      ...['a', 'b'].map((end) => 'a'.repeat(1023) + end),
      ...['\u{1f600}', '\u{1f601}'].map((end) => '\u{1f600}'.repeat(255) + end),
    ]
    await session.commit(long.map((key) => put(key, key)))
    equal(await keys(session), long, 'keys')
    equal(await keys(session, long[1]!), [long[1]], 'keys with a whole key as prefix')
    equal(await keys(session, '', long[2]!), [long[3]], 'keys after a long key')
    for (const key of long) equal(await valueAt(session, key), key, 'value')
  },
}

export const EVERYTHING = { prefix: '', after: '', limit: 10_000 }

export function put(key: string, value: JsonValue, expect?: number | null) {
  return { kind: 'put', collection: 'streams', key, value, expect } as const
}

export function remove(key: string, expect?: number) {
  return { kind: 'delete', collection: 'streams', key, expect } as const
}

function check(key: string, expect: number) {
  return { kind: 'check', collection: 'streams', key, expect } as const
}

export async function valueAt(session: StorageSession, key: string): Promise<JsonValue | undefined> {
  return (await session.get('streams', key))?.value
}

export async function versionOf(session: StorageSession, key: string): Promise<number> {
  const document = await session.get('streams', key)
  ok(document !== undefined, `there is no document ${key}`)
  return document.version
}

async function keys(session: StorageSession, prefix = '', after = '', limit = 10_000): Promise<string[]> {
  return (await session.list('streams', { prefix, after, limit })).map(({ key }) => key)
}
