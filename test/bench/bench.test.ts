import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { pageOf } from '../../bench/harness/page.ts'
import { readResults } from '../../bench/harness/results.ts'
import { MEASUREMENTS } from '../../bench/rows/index.ts'

const COLUMNS = 9

describe('docs/benchmarks.md', () => {
  const page = readFileSync('docs/benchmarks.md', 'utf8')

  it('is what `npm run bench -- --render` makes of the results', () => {
    const results = readResults('bench/results.json')
    expect(results.rows.map(({ name }) => name).filter((name) => !(name in MEASUREMENTS))).toEqual([])
    expect(page).toBe(pageOf(results))
  })

  it('counts and names the requirements that its rows miss', () => {
    const required = rowsOf(page).filter(([, , , , requirement]) => requirement!.trim() !== '')
    const missed = required.filter(([, , , , , verdict]) => verdict === '**missed**')
    const names = missed.map(([name, , against]) => `- ${name} against ${against}`)
    const met = required.length - missed.length
    expect(page).toContain(`${met} of ${required.length} required ratios are met. Missed:\n\n`)
    expect(page.match(/^- `[^`]+` against .*$/gm) ?? []).toEqual(names)
  })
})

function rowsOf(page: string): string[][] {
  const lines = page.split('\n').filter((line) => line.startsWith('| `'))
  const rows = lines.map((line) => line.split(' | ').map((cell) => cell.replace(/^\| | \|$/g, '')))
  // The tables that show where the time goes have fewer columns.
  return rows.filter(({ length }) => length === COLUMNS)
}
