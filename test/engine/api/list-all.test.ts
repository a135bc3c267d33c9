import { afterEach, describe, expect, it } from 'vitest'
import { listAll } from '../../../src/api/lists.ts'
import type { ListQuery } from '../../../src/index.ts'
import { openEngine, type TestEngine } from '../../support/index.ts'

let engine: TestEngine | undefined
afterEach(async () => {
  await engine?.hw.close()
  engine = undefined
})

async function namesOf<Item>(items: AsyncIterable<Item>, nameOf: (item: Item) => string): Promise<string[]> {
  const names: string[] = []
  for await (const item of items) names.push(nameOf(item))
  return names
}

describe('listAll', () => {
  const NAMES = ['a', 'b', 'c', 'd', 'e']
  const queries: ListQuery[] = []
  const list = (pageSize: number) => async (query: ListQuery) => {
    queries.push(query)
    const expected = NAMES.filter((name) => name > (query.startAfter ?? ''))
    return { items: expected.slice(0, pageSize), hasMore: expected.length > pageSize }
  }
  afterEach(() => queries.splice(0))

  it.each([1, 2, 4, 5, 6])('reads every item once, in pages of %d', async (pageSize) => {
    expect(await namesOf(listAll({}, list(pageSize), String), String)).toEqual(NAMES)
    expect(queries).toHaveLength(Math.ceil(NAMES.length / pageSize))
  })

  it('reads no further page than is iterated', async () => {
    for await (const name of listAll({}, list(2), String)) if (name === 'b') break
    expect(queries).toHaveLength(1)
  })
})

describe('an engine', () => {
  it('lists all basins, streams and access tokens', async () => {
    engine = await openEngine()
    const { hw } = engine
    for (const name of ['one', 'two']) await hw.createBasin(name)
    for (const name of ['x/1', 'x/2', 'y']) await hw.basin('one').createStream(name)
    for (const id of ['t1', 't2']) await hw.issueAccessToken({ id, scope: { ops: ['read'] } })
    expect(await namesOf(hw.listAllBasins(), ({ name }) => name)).toEqual(['basin', 'one', 'two'])
    expect(await namesOf(hw.basin('one').listAllStreams({ prefix: 'x/' }), ({ name }) => name)).toEqual([
      'x/1',
      'x/2',
    ])
    expect(await namesOf(hw.listAllAccessTokens(), ({ id }) => id)).toEqual(['t1', 't2'])
  })
})
