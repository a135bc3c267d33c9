import type { ListRange, StorageSession } from '../../src/storage/contract.ts'
import { put } from './catalog.ts'
import { type ConformanceCase, equal } from './harness.ts'

/** Keys in the order of their UTF-8 bytes, which is neither that of UTF-16 units nor that of any language. */
const ORDERED_KEYS: readonly string[] = [
  '\u0000',
  '\u0000\u0000',
  '\u0000a',
  '\u0001',
  ' ',
  '%',
  '-',
  '/',
  '0',
  '10',
  '9',
  'A',
  'B',
  'Z',
  '\\',
  '_',
  'a',
  'a\u0000',
  'a\u0000b',
  'a ',
  'a%',
  'a/b',
  'a_',
  'aa',
  'ab',
  'b',
  'e\u0301',
  'z',
  '\u007f',
  '\u0080',
  '\u00e9',
  '\u07ff',
  '\u0800',
  '\ud7ff',
  '\ue000',
  '\ue000a',
  '\ufeff',
  '\ufffd',
  '\uffff',
  '\u{10000}',
  '\u{10000}a',
  '\u{1f600}',
  '\u{10ffff}',
  '\u{10ffff}\u{10ffff}',
]

export const catalogListCases: readonly ConformanceCase[] = [
  {
    title: 'a list of an empty collection is empty',
    async run(harness) {
      const session = await harness.open()
      equal(await keys(session, {}), [], 'keys')
    },
  },
  {
    title: 'keys are listed in the order of their UTF-8 bytes',
    async run(harness) {
      const session = await harness.open()
      await fill(session, ORDERED_KEYS)
      equal(await keys(session, {}), ORDERED_KEYS, 'keys')
      for (const key of ORDERED_KEYS) {
        equal((await session.get('streams', key))?.value, key, `value of ${JSON.stringify(key)}`)
      }
    },
  },
  {
    title: 'a list contains the keys after `after`, whether that key exists or not',
    async run(harness) {
      const session = await harness.open()
      await fill(session, ORDERED_KEYS)
      for (const [index, after] of ORDERED_KEYS.entries()) {
        equal(
          await keys(session, { after }),
          ORDERED_KEYS.slice(index + 1),
          `keys after ${JSON.stringify(after)}`,
        )
      }
      await session.commit([{ kind: 'delete', collection: 'streams', key: 'aa' }])
      const expected = ORDERED_KEYS.slice(ORDERED_KEYS.indexOf('ab'))
      equal(await keys(session, { after: 'aa' }), expected, 'keys after a missing key')
    },
  },
  {
    title: 'a list contains the keys with the literal prefix',
    async run(harness) {
      const session = await harness.open()
      await fill(session, ORDERED_KEYS)
      for (const prefix of [
        '',
        'a',
        'a\u0000',
        'a%',
        'a_',
        '%',
        '_',
        '\\',
        '\u0000',
        '\ue000',
        '\u{10000}',
        '\u{10ffff}',
        'none',
      ]) {
        const expected = ORDERED_KEYS.filter((key) => key.startsWith(prefix))
        equal(await keys(session, { prefix }), expected, `keys with prefix ${JSON.stringify(prefix)}`)
      }
    },
  },
  {
    title: 'prefix and `after` combine',
    async run(harness) {
      const session = await harness.open()
      await fill(session, ORDERED_KEYS)
      const withA = ORDERED_KEYS.filter((key) => key.startsWith('a'))
      equal(await keys(session, { prefix: 'a', after: 'Z' }), withA, 'keys, after a key before the prefix')
      equal(await keys(session, { prefix: 'a', after: 'a' }), withA.slice(1), 'keys, after the prefix')
      equal(await keys(session, { prefix: 'a', after: 'ab' }), [], 'keys, after the last with the prefix')
      equal(await keys(session, { prefix: 'a', after: 'b' }), [], 'keys, after a key behind the prefix')
      equal(
        await keys(session, { prefix: 'a', after: '\u{10ffff}' }),
        [],
        'keys, after a key far behind the prefix',
      )
    },
  },
  {
    title: 'a list contains at most `limit` keys, and pages contain every key once',
    async run(harness) {
      const session = await harness.open()
      const names = Array.from({ length: 1500 }, (_, i) => `key-${String(i).padStart(4, '0')}`)
      await fill(session, [...names].reverse())
      equal(await keys(session, { limit: 1 }), names.slice(0, 1), 'one key')
      for (const limit of [7, 500, 1500, 1501]) {
        const listed: string[] = []
        for (;;) {
          const page = await keys(session, { prefix: 'key-', after: listed.at(-1) ?? '', limit })
          listed.push(...page)
          if (page.length < limit) break
        }
        equal(listed, names, `keys in pages of ${limit}`)
      }
    },
  },
  {
    title: 'keys of 1,024 bytes that differ only at the end are distinct',
    async run(harness) {
      const session = await harness.open()
      const long = [
        `${'a'.repeat(1023)}a`,
        `${'a'.repeat(1023)}b`,
        `${'\u{1f600}'.repeat(255)}\u{1f600}`,
        `${'\u{1f600}'.repeat(255)}\u{1f601}`,
      ]
      await fill(session, long)
      equal(await keys(session, {}), long, 'keys')
      equal(await keys(session, { prefix: long[1]! }), [long[1]], 'keys with a whole key as prefix')
      equal(await keys(session, { after: long[2]! }), [long[3]], 'keys after a long key')
      for (const key of long) equal((await session.get('streams', key))?.value, key, 'value')
    },
  },
  {
    title: 'a list returns current values and versions and no deleted documents',
    async run(harness) {
      const session = await harness.open()
      await fill(session, ['a', 'b', 'c'])
      await session.commit([put('a', 'new'), { kind: 'delete', collection: 'streams', key: 'b' }])
      const listed = await session.list('streams', { prefix: '', after: '', limit: 10 })
      equal(listed, [await session.get('streams', 'a'), await session.get('streams', 'c')], 'documents')
      equal(listed[0]?.value, 'new', 'value')
    },
  },
]

async function fill(session: StorageSession, names: readonly string[]): Promise<void> {
  await session.commit(names.map((key) => put(key, key)))
}

async function keys(session: StorageSession, range: Partial<ListRange>): Promise<string[]> {
  const listed = await session.list('streams', { prefix: '', after: '', limit: 10_000, ...range })
  return listed.map(({ key }) => key)
}
