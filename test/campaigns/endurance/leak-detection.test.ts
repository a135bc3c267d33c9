// @module-tag nightly

import { expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { runScenarios } from './campaign.ts'
import { problemsOf } from './harness/report.ts'
import { EXPECTED, LEAKS } from './leaking/leaks.ts'

const program = bundleProgram(new URL('./leaking/child.ts', import.meta.url))

it.concurrent.each(LEAKS)('$name', { timeout: Number.POSITIVE_INFINITY }, async ({ name, scales }) => {
  const report = await runScenarios(await program, { scenario: name, storage: 'memory', scale: scales.test })
  expect(problemsOf(report).join('\n')).toMatch(EXPECTED[name]!)
})
