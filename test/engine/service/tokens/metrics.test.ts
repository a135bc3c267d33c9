import { afterEach, expect, it } from 'vitest'
import { type AccessEngine, EVERYTHING, openWithTokens } from './support.ts'

let engine: AccessEngine
afterEach(() => engine.hw.close())

it('account metrics name only the basins in scope', async () => {
  engine = await openWithTokens()
  const { hw, clock, issued } = engine
  await hw.basin('other').stream('stream').append('a')
  const end = clock.now() + 60_000
  const query = { set: 'active-basins', start: end - 3_600_000, end } as const
  const labels = async (view: typeof hw) =>
    (await view.metrics(query)).flatMap((metric) => (metric.kind === 'label' ? metric.values : []))
  expect(await labels(hw)).toEqual(['basin', 'other'])
  const views = {
    all: await issued({ id: 'all' }),
    one: await issued({ id: 'one', scope: { ...EVERYTHING, basins: { exact: 'basin' } } }),
    prefix: await issued({ id: 'prefix', scope: { ...EVERYTHING, basins: { prefix: 'o' } } }),
    none: await issued({ id: 'none', scope: { ...EVERYTHING, basins: null } }),
  }
  expect(await labels(views.all)).toEqual(['basin', 'other'])
  expect(await labels(views.one)).toEqual(['basin'])
  expect(await labels(views.prefix)).toEqual(['other'])
  expect(await labels(views.none)).toEqual([])
})
