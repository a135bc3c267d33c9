// @module-tag nightly

import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { bundleProgram } from '../../support/child-process.ts'
import { BROKEN } from './broken/targets.ts'
import { type CampaignOptions, campaign, planOf } from './harness/campaign.ts'
import { smallest } from './harness/smallest.ts'
import { TARGETS } from './targets/index.ts'

const SLOW = { timeout: 240_000 }
const CORPUS = fileURLToPath(new URL('corpus', import.meta.url))
const INPUTS = 400
/** More than the number of valid inputs, so that some are mutated. */
const DIGESTED = 140

let broken: string
let real: string
beforeAll(async () => {
  broken = await bundleProgram(new URL('./broken/child.ts', import.meta.url))
  real = await bundleProgram(new URL('./child.ts', import.meta.url))
}, SLOW.timeout)

function campaignAgainst(names: readonly string[], options?: CampaignOptions) {
  const plan = names.map((target) => ({ target, inputs: INPUTS }))
  return campaign(broken, { seed: 1, corpus: tmpdir(), plan }, options)
}

describe.concurrent('a campaign on a decoder that is', () => {
  it.each([
    ['of-another-type', /it throws what it should not.*x is not a function/s],
    ['of-the-platform', /it throws what it should not.*Invalid typed array length/s],
    ['repeating', /the message has \d+ characters/],
    ['allocating', /it asks for 50000000 bytes of memory/],
    ['returning', /the value holds 2000000 bytes/],
    ['polluting', /every object has a member polluted/],
    ['lying', /it is not what it should be/],
  ])('%s reports the smallest input that shows it', SLOW, async (name, problem) => {
    const { failures } = await campaignAgainst([name])
    expect(failures).toMatchObject([{ target: name, index: expect.any(Number), input: '{"hex":"ee"}' }])
    expect(failures[0]!.problem).toMatch(problem)
  })

  it.each<[string, RegExp, CampaignOptions?]>([
    ['endless', /prints nothing any more/, { silenceMs: 10_000 }],
    ['unanswered', /exits with 13/],
    ['exploding', /exits with SIGABRT.*heap/s, { heapMiB: 64 }],
  ])('%s reports it and continues with the next', SLOW, async (name, problem, options) => {
    const { failures, played } = await campaignAgainst([name, 'sound'], options)
    expect(failures).toMatchObject([{ target: name, index: expect.any(Number) }])
    expect(failures[0]!.problem).toMatch(problem)
    expect(played.get('sound')?.inputs).toBe(INPUTS)
    // Earlier inputs alone do not fail.
    const plan = [{ target: name, inputs: failures[0]!.index! }]
    expect((await campaign(broken, { seed: 1, corpus: tmpdir(), plan })).failures).toEqual([])
  })

  it('retaining memory reports it', SLOW, async () => {
    const { failures } = await campaignAgainst(['keeping'])
    expect(failures).toMatchObject([
      { target: 'keeping', problem: expect.stringMatching(/it keeps \d+ bytes for good/) },
    ])
  })

  it('sound reports nothing', SLOW, async () => {
    const { failures, played } = await campaignAgainst(['sound'])
    expect(failures).toEqual([])
    expect(played.get('sound')?.inputs).toBe(INPUTS)
  })
})

it('campaigns have the same inputs for the same seed and different ones for another', SLOW, async () => {
  const some = TARGETS.filter((_, index) => index % 6 === 0)
  const plan = some.map(({ name }) => ({ target: name, inputs: DIGESTED }))
  const digests = async (seed: number) => {
    const { played } = await campaign(real, { seed, corpus: CORPUS, plan })
    return Object.fromEntries([...played].map(([name, { digest }]) => [name, digest]))
  }
  const [first, repeated, other] = [await digests(1), await digests(1), await digests(2)]
  expect(repeated).toEqual(first)
  for (const { name } of some) expect([name, other[name]]).not.toEqual([name, first[name]])
})

it('a plan has at least the requested number of inputs, and some for each decoder', () => {
  for (const inputs of [1, 1000, 1_000_000]) {
    const plan = planOf(TARGETS, inputs)
    expect(plan.map(({ target }) => target)).toEqual(TARGETS.map(({ name }) => name))
    expect(plan.every((step) => step.inputs > 0)).toBe(true)
    expect(plan.reduce((sum, step) => sum + step.inputs, 0)).toBeGreaterThanOrEqual(inputs)
  }
})

it('decoders have different names', () => {
  const names = [...TARGETS, ...BROKEN].map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

it('reduces an input to the smallest that fails', async () => {
  expect(await smallest('abcxdefxgh', async (text) => /x.*x/.test(String(text)))).toBe('xx')
  expect(await smallest(Uint8Array.of(1, 2, 3, 4), async (bytes) => bytes.length >= 2)).toHaveLength(2)
})
