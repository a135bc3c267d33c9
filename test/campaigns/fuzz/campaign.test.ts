// @module-tag nightly

import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { campaignOf, replayCommand } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { campaign, planOf } from './harness/campaign.ts'
import type { Failure } from './harness/messages.ts'
import { TARGETS } from './targets/index.ts'

const fuzz = campaignOf('fuzz', {
  inputs: 10_000,
  seed: 1,
  target: undefined as string | undefined,
  case: undefined as number | undefined,
})
const { inputs, seed, target, case: only } = fuzz.options
const CORPUS = fileURLToPath(new URL('corpus', import.meta.url))

it('decoders behave as documented for valid, mutated and random input', {
  timeout: Number.POSITIVE_INFINITY,
}, async () => {
  const program = await bundleProgram(new URL('./child.ts', import.meta.url))
  const targets = TARGETS.filter(({ name }) => target === undefined || name === target)
  const plan =
    only === undefined
      ? planOf(targets, inputs)
      : targets.map(({ name }) => ({ target: name, inputs: only + 1 }))
  const progress = new Progress(fuzz, 'inputs', only === undefined ? inputs : 1)
  const { failures } = await campaign(
    program,
    { seed, corpus: CORPUS, plan, from: only ?? 0 },
    { onPlayed: (played) => progress.pass(played.inputs) },
  )
  progress.fail(failures.length)
  progress.close()
  expect(failures.map(described).join('\n\n')).toBe('')
  expect(progress.passed).toBeGreaterThanOrEqual(only === undefined ? inputs : 1)
})

function described({ target, index, input, problem }: Failure): string {
  return [
    `${target}: ${problem}`,
    ...(input === undefined ? [] : [`Input: ${input}`]),
    `Replay: ${replayCommand('fuzz', { target, seed, case: index })}`,
  ].join('\n')
}
