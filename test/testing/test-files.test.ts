import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { readSources } from '../architecture/source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
/** This file, and what meets real processes on real time: a campaign, and a proxy whose faults are delays. */
const EXCEPTIONS =
  /^test\/(testing\/test-files\.test|campaigns\/bucket\/|storage\/s3\/(fault-proxy|versitygw)\.)/

/** Matches waits for time alone. A timer that ends a hanging operation does not match. */
const SLEEPS = [
  /new Promise\b[^;]{0,100}?=>\s*(\{\s*)?(void\s+|return\s+)?setTimeout\(\s*(\w+|\(\)\s*=>[^,]{0,40}),/,
  /\bpromisify\(\s*setTimeout\s*\)/,
  /import \{[^}]*\bsetTimeout\b[^}]*\} from '(node:)?timers\/promises'/,
  /import (\w+|\* as \w+) from '(node:)?timers\/promises'/,
  /\.waitForTimeout\(/,
  /\bscheduler\.wait\(/,
  /\bAtomics\.wait\(/,
  /\bpg_sleep\b/,
]

function sleeps(text: string): boolean {
  return SLEEPS.some((sleep) => sleep.test(text))
}

test('no test sleeps; tests use the virtual clock or wait for a condition', () => {
  const sources = [...readSources(ROOT, ['test'])]
  expect(sources.length).toBeGreaterThan(100)
  const sleeping = sources.filter(([, text]) => sleeps(text)).map(([path]) => path)
  expect(sleeping.filter((path) => !EXCEPTIONS.test(path))).toEqual([])
})

test.each([
  ['await new Promise((resolve) => setTimeout(resolve, 10))', true],
  ['new Promise((done: () => void) => void setTimeout(() => done(), ms))', true],
  ["import { setTimeout as sleep } from 'node:timers/promises'", true],
  ['await page.waitForTimeout(10)', true],
  ["await client.query('SELECT pg_sleep(1)')", true],
  ['await new Promise((resolve) => setTimeout(resolve))', false],
  ['const timer = setTimeout(() => child.kill(), 10_000)', false],
])('%s: %s', (text, expected) => {
  expect(sleeps(text)).toBe(expected)
})
