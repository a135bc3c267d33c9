import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { pageOf } from '../../bench/harness/page.ts'
import { readResults } from '../../bench/harness/results.ts'
import { MEASUREMENTS } from '../../bench/rows/index.ts'

it('docs/benchmarks.md is what `npm run bench -- --render` makes of the results', () => {
  const results = readResults('bench/results.json')
  expect(results.rows.map(({ name }) => name).filter((name) => !(name in MEASUREMENTS))).toEqual([])
  expect(readFileSync('docs/benchmarks.md', 'utf8')).toBe(pageOf(results))
})
