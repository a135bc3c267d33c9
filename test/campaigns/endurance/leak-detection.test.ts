import { expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { play } from './campaign.ts'
import { problemsOf } from './harness/report.ts'
import { LEAKS, TOLD } from './leaking/leaks.ts'

const program = bundleProgram(new URL('./leaking/child.ts', import.meta.url))

it.concurrent.each(LEAKS)('$name', { timeout: Number.POSITIVE_INFINITY }, async ({ name, scales }) => {
  const report = await play(await program, { scenario: name, storage: 'memory', scale: scales.test })
  expect(problemsOf(report).join('\n')).toMatch(TOLD[name]!)
})
