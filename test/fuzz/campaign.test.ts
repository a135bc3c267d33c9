import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { campaign } from './harness/campaign.ts'
import type { Failure } from './harness/messages.ts'
import { planOf } from './harness/plan.ts'
import { type Program, programOf } from './harness/program.ts'
import { TARGETS } from './targets/index.ts'

// The whole of it is `npm run fuzz`, which sets these.
const { FUZZ_INPUTS, FUZZ_SEED = '1', FUZZ_TARGET, FUZZ_CASE } = process.env
const INPUTS = Number(FUZZ_INPUTS ?? 60_000)
const CORPUS = fileURLToPath(new URL('corpus', import.meta.url))

let program: Program
beforeAll(async () => {
  program = await programOf(new URL('child.ts', import.meta.url))
})
afterAll(() => program.remove())

it('no decoder breaks its promises', { timeout: Number.POSITIVE_INFINITY }, async () => {
  const targets = TARGETS.filter(({ name }) => FUZZ_TARGET === undefined || name === FUZZ_TARGET)
  const only = FUZZ_CASE === undefined ? undefined : Number(FUZZ_CASE)
  const plan =
    only === undefined
      ? planOf(targets, INPUTS)
      : targets.map(({ name }) => ({ target: name, inputs: only + 1 }))
  const { played, failures } = await campaign(program.path, {
    seed: Number(FUZZ_SEED),
    corpus: CORPUS,
    plan,
    from: only ?? 0,
  })
  expect(failures.map(described).join('\n\n')).toBe('')
  const total = [...played.values()].reduce((sum, { inputs }) => sum + inputs, 0)
  expect(total).toBeGreaterThanOrEqual(only === undefined ? INPUTS : 1)
  if (FUZZ_INPUTS !== undefined) console.log(`${total} inputs`)
})

function described({ target, index, input, problem }: Failure): string {
  const replay = `npm run fuzz -- --target ${target} --seed ${FUZZ_SEED}${index === undefined ? '' : ` --case ${index}`}`
  return [
    `${target}: ${problem}`,
    ...(input === undefined ? [] : [`Input: ${input}`]),
    `Again: ${replay}`,
  ].join('\n')
}
