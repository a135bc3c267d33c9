import { expect, test } from 'vitest'
import type { AccessTokenInput } from '../../../src/index.ts'
import type { ResourceSet } from '../../../src/model/access.ts'
import type { ListQuery, Page } from '../../../src/model/info.ts'
import { openEngine } from '../../support/index.ts'

const BASINS = ['a', 'ab', 'a-b', 'b', 'basin']
/** Among them are the prefixes of callers themselves, and names whose order in UTF-16 is another. */
const STREAMS = [
  't',
  't/',
  't//',
  't/a',
  't/a/b',
  't/b',
  't/\u{1f600}',
  't/\uffee',
  'u',
  '\u{1f600}',
  '\uffee',
]
const TOKENS = ['t', 't/', 't/1', 't/2', 'x']

const CALLERS: readonly (readonly [kind: string, set: ResourceSet | null, isPrefixed: boolean])[] = [
  ['everything', { prefix: '' }, false],
  ['a prefix', { prefix: 't/' }, false],
  ['an automatic prefix', { prefix: 't/' }, true],
  ['an automatic prefix that is empty', { prefix: '' }, true],
  ['one name', { exact: 't/a' }, false],
  ['one name that nothing has', { exact: 'v' }, false],
  ['the empty name', { exact: '' }, false],
  ['nothing', null, false],
]

const byUtf8 = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

function isIn(set: ResourceSet | null, name: string): boolean {
  if (set === null) return false
  return 'prefix' in set ? name.startsWith(set.prefix) : set.exact !== '' && set.exact === name
}

/** Pages through a list by its last names, as clients do. */
async function pagesOf(
  list: (query: ListQuery) => Promise<Page<string>>,
  prefix: string,
  limit: number,
): Promise<string[]> {
  const names: string[] = []
  let startAfter = ''
  for (;;) {
    expect(names.length, 'the names so far').toBeLessThan(100)
    const { items, hasMore } = await list({ prefix, startAfter, limit })
    expect(items.length).toBeLessThanOrEqual(limit)
    names.push(...items)
    if (!hasMore) return names
    expect(items.length).toBe(limit)
    startAfter = items.at(-1)!
  }
}

test.each(CALLERS)(
  'every list ends and is complete, page by page, for a caller with %s',
  async (_, set, isPrefixed) => {
    const { hw } = await openEngine()
    for (const name of BASINS) await hw.ensureBasin(name)
    for (const name of STREAMS) await hw.basin('b').createStream(name)
    const all = { basins: { prefix: '' }, streams: { prefix: '' }, accessTokens: { prefix: '' } }
    const issue = (id: string, scope: AccessTokenInput['scope'], autoPrefixStreams = false) =>
      hw.issueAccessToken({ id, autoPrefixStreams, scope })
    for (const id of TOKENS) await issue(id, { ...all, ops: ['read'] })
    const ops = ['list-basins', 'list-streams', 'list-access-tokens'] as const
    const basinSet = basinSetOf(set)
    const ofBasins = hw.as(await issue('holder of basins', { ...all, basins: basinSet, ops }))
    const others = { basins: { prefix: '' }, streams: set, accessTokens: set, ops }
    const holder = hw.as(await issue('holder', others, isPrefixed))

    const shown = isPrefixed && set !== null && 'prefix' in set ? set.prefix.length : 0
    const lists: Record<string, readonly [(query: ListQuery) => Promise<Page<string>>, string[]]> = {
      basins: [
        async (query) => namesOf(await ofBasins.listBasins(query), ({ name }) => name),
        BASINS.filter((name) => isIn(basinSet, name)),
      ],
      streams: [
        async (query) => namesOf(await holder.basin('b').listStreams(query), ({ name }) => name),
        STREAMS.filter((name) => isIn(set, name) && name.length > shown).map((name) => name.slice(shown)),
      ],
      tokens: [
        async (query) => namesOf(await holder.listAccessTokens(query), ({ id }) => id),
        [...TOKENS, 'holder', 'holder of basins'].filter((id) => isIn(set, id)),
      ],
    }
    for (const [list, names] of Object.values(lists)) {
      const prefixes = ['', ...new Set(names.flatMap((name) => [name, [...name][0]!]))]
      for (const prefix of prefixes) {
        const expected = names.filter((name) => name.startsWith(prefix)).sort(byUtf8)
        for (let limit = 1; limit <= expected.length + 1; limit++) {
          expect(await pagesOf(list, prefix, limit)).toEqual(expected)
        }
      }
    }
  },
)

/** The same kind of set for basins, whose names have no slash. */
function basinSetOf(set: ResourceSet | null): ResourceSet | null {
  if (set === null) return null
  if ('prefix' in set) return { prefix: set.prefix === '' ? '' : 'a' }
  return { exact: set.exact === '' ? '' : set.exact === 't/a' ? 'ab' : 'none' }
}

function namesOf<Item>({ items, hasMore }: Page<Item>, nameOf: (item: Item) => string): Page<string> {
  return { items: items.map(nameOf), hasMore }
}
