// @module-tag slow

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pageOf } from '../../bench/harness/page.ts'
import { readResults } from '../../bench/harness/results.ts'
import { GROUPS, MEASUREMENTS } from '../../bench/rows/index.ts'

const run = promisify(execFile)
const COLUMNS = 9

describe('npm run bench', () => {
  let directory: string
  let page: string

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'headwater-bench-test-'))
    const paths = ['--results', join(directory, 'results.json'), '--page', join(directory, 'page')]
    const options = ['--quick', '--rounds', '1', '--save', ...paths]
    // The second run keeps the row of the first.
    await run(process.execPath, ['scripts/bench.mjs', 'memory-append', ...options])
    await run(process.execPath, ['scripts/bench.mjs', 'client-append', ...options])
    page = readFileSync(join(directory, 'page'), 'utf8')
  })
  afterAll(() => rmSync(directory, { recursive: true }))

  it('writes a row with a ratio, a requirement and figures of both sides', () => {
    const rows = rowsOf(page)
    expect(new Set(rows.map(([name]) => name))).toEqual(new Set(['`memory-append`', '`client-append`']))
    const row = rows.find(([name]) => name === '`memory-append`')
    const [name, work, against, ratio, required, verdict, figures, cpu, peak] = row!
    expect([name, required]).toEqual(['`memory-append`', '≤ 3 µs'])
    expect(work).toContain('one record awaited')
    expect(against).toContain('promise')
    expect(ratio).toMatch(/^[\d.]+ \([\d.]+ to [\d.]+\)$/)
    expect(['met', '**missed**']).toContain(verdict)
    expect(figures).toMatch(/^[\d.]+ .s, [\d.]+ .s an append$/)
    expect(cpu).toMatch(/^[\d.]+: [\d.]+ .s, [\d.]+ .s$/)
    expect(peak).toMatch(/^[\d.]+ MiB, [\d.]+ MiB$/)
  })

  it('names dates, the machine and the versions, and fills in every part of the page', () => {
    const condition = /^Measured on \d{4}-\d\d-\d\d, 1 round, `--quick`, load average \d+\.\d\.$/gm
    expect(page.match(condition)).toHaveLength(2)
    expect(page).toMatch(/^- Machine: .+ cores, \d+ GiB/m)
    expect(page).toContain(`- Node ${process.versions.node}, headwater `)
    expect(page).not.toContain('{{')
    expect(page.match(/^Not measured\.$/gm)).toHaveLength(Object.keys(GROUPS).length - 2)
  })

  it('rejects an unknown name with the known ones', async () => {
    await expect(run(process.execPath, ['scripts/bench.mjs', 'unknown'])).rejects.toMatchObject({
      stderr: expect.stringMatching(/unknown benchmark `unknown`; expected one of .*http-append/),
    })
  })
})

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
