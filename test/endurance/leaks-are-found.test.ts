import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Program, programOf } from '../fuzz/harness/program.ts'
import { problemsOf } from './harness/report.ts'
import { runChild } from './harness/run-child.ts'
import { LEAKS, TOLD } from './leaking/leaks.ts'

let program: Program
beforeAll(async () => {
  program = await programOf(new URL('leaking/child.ts', import.meta.url))
})
afterAll(() => program.remove())

it.concurrent.each(LEAKS)('$name', { timeout: Number.POSITIVE_INFINITY }, async ({ name, scales }) => {
  const report = await runChild(program.path, { scenario: name, storage: 'memory', scale: scales.test })
  expect(problemsOf(report).join('\n')).toMatch(TOLD[name]!)
})
