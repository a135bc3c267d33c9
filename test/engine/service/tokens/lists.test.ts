import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Engine } from '../../../../src/index.ts'
import type { AccessScopeInput } from '../../../../src/model/access.ts'
import type { ListQuery } from '../../../../src/model/info.ts'
import { type AccessEngine, EVERYTHING, failure, openWithTokens, outcome } from './support.ts'

let engine: AccessEngine
beforeEach(async () => {
  engine = await openWithTokens()
  for (const name of ['a', 'ab', 'ab-1', 'ab-2', 'b']) {
    await engine.hw.ensureBasin(name)
    await engine.hw.basin('basin').ensureStream(name)
    await engine.hw.issueAccessToken({ id: name, scope: { ops: ['read'] } })
  }
})
afterEach(() => engine.hw.close())

const LISTS = {
  basins: async (hw: Engine, query: ListQuery) => {
    const { items, hasMore } = await hw.listBasins(query)
    return { names: items.map(({ name }) => name).filter((name) => name !== 'basin'), hasMore }
  },
  streams: async (hw: Engine, query: ListQuery) => {
    const { items, hasMore } = await hw.basin('basin').listStreams(query)
    return { names: items.map(({ name }) => name).filter((name) => name !== 'stream'), hasMore }
  },
  accessTokens: async (hw: Engine, query: ListQuery) => {
    const { items, hasMore } = await hw.listAccessTokens(query)
    return { names: items.map(({ id }) => id).filter((id) => id !== 'token'), hasMore }
  },
}

describe.each(Object.entries(LISTS))('a list contains only resources in scope: %s', (kind, list) => {
  it.each<[AccessScopeInput['basins'], ListQuery, names: string[], hasMore: boolean]>([
    [{ exact: 'ab' }, {}, ['ab'], false],
    [null, {}, [], false],
    [{ prefix: 'ab' }, {}, ['ab', 'ab-1', 'ab-2'], false],
    [{ prefix: 'ab' }, { limit: 2 }, ['ab', 'ab-1'], true],
    [{ prefix: 'ab' }, { prefix: 'ab-', startAfter: 'ab-1' }, ['ab-2'], false],
  ])('scope %j, query %j', async (set, query, names, hasMore) => {
    const view = await engine.issued({ scope: { ...EVERYTHING, [kind]: set } })
    expect(await list(view, query)).toEqual({ names, hasMore })
  })
})

it('rejects a missing basin even if no stream is in scope', async () => {
  const view = await engine.issued({ scope: { ...EVERYTHING, streams: null } })
  expect(await outcome(view.basin('basin').listStreams())).toBe('ok')
  expect(await outcome(view.basin('missing').listStreams())).toBe('basin_not_found')
  const error = await failure(view.basin('basin').listStreams({ prefix: 'x'.repeat(513) }))
  expect([error?.code, error?.field]).toEqual(['invalid', 'prefix'])
})
