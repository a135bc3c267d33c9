import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { ONLY_IN_FULL_RUNS, REPEATED_IN_FULL_RUNS } from '../full-runs.ts'

const TESTS = fileURLToPath(new URL('..', import.meta.url))
const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).map((path) => `test/${path}`)

/** Replaces each `{a,b}`. */
function expanded(pattern: string): string[] {
  const [, before, choices, after] = /^(.*?)\{([^}]*)\}(.*)$/.exec(pattern) ?? []
  if (choices === undefined) return [pattern]
  return choices.split(',').flatMap((choice) => expanded(`${before}${choice}${after}`))
}

function matches(pattern: string): boolean {
  const source = pattern.replace(/[.]/g, '\\.').replace(/\*+/g, (stars) => (stars === '*' ? '[^/]*' : '.*'))
  return files.some((file) => file.endsWith('.test.ts') && new RegExp(`^${source}$`).test(file))
}

it('what quick runs leave out exists', () => {
  const patterns = [...ONLY_IN_FULL_RUNS, ...Object.values(REPEATED_IN_FULL_RUNS).flat()].flatMap(expanded)
  expect(patterns.length).toBeGreaterThan(60)
  expect(patterns.filter((pattern) => !matches(pattern))).toEqual([])
})

it('a pattern without files is noticed', () => {
  expect(expanded('test/{engine,motor}/{api,log}/*.test.ts').map(matches)).toEqual([true, true, false, false])
})
