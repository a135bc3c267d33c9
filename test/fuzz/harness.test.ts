import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BROKEN } from './broken/targets.ts'
import { campaign } from './harness/campaign.ts'
import { planOf } from './harness/plan.ts'
import { type Program, programOf } from './harness/program.ts'
import { smallest } from './harness/smallest.ts'
import { TARGETS } from './targets/index.ts'

const SLOW = { timeout: 240_000 }
const CORPUS = fileURLToPath(new URL('corpus', import.meta.url))
const INPUTS = 400
/** Beyond those that are known, so that some are mutated. */
const DIGESTED = 140

let broken: Program
let real: Program
beforeAll(async () => {
  broken = await programOf(new URL('broken/child.ts', import.meta.url))
  real = await programOf(new URL('child.ts', import.meta.url))
}, SLOW.timeout)
afterAll(() => Promise.all([broken.remove(), real.remove()]))

function campaignAgainst(names: readonly string[], options?: { readonly silenceMs: number }) {
  const plan = names.map((target) => ({ target, inputs: INPUTS }))
  return campaign(broken.path, { seed: 1, corpus: tmpdir(), plan }, options)
}

describe.concurrent('a campaign tells of a decoder', () => {
  it.each([
    ['of-another-type', /it throws what it should not.*x is not a function/s],
    ['of-the-platform', /it throws what it should not.*Invalid typed array length/s],
    ['repeating', /the message has \d+ characters/],
    ['allocating', /it asks for 50000000 bytes of memory/],
    ['returning', /the value holds 2000000 bytes/],
    ['polluting', /every object has a member polluted/],
    ['lying', /it is not what it should be/],
  ])('%s, with the least input that shows it', SLOW, async (name, problem) => {
    const { failures } = await campaignAgainst([name])
    expect(failures).toMatchObject([{ target: name, index: expect.any(Number), input: '{"hex":"ee"}' }])
    expect(failures[0]!.problem).toMatch(problem)
  })

  it.each<[string, RegExp, { silenceMs: number }?]>([
    ['endless', /nothing is heard of it any more/, { silenceMs: 4000 }],
    ['unanswered', /it dies \(13\)/],
    ['exploding', /it dies \(SIGABRT\).*heap/s],
  ])('%s, and goes on with the next', SLOW, async (name, problem, options) => {
    const { failures, played } = await campaignAgainst([name, 'sound'], options)
    expect(failures).toMatchObject([{ target: name, index: expect.any(Number) }])
    expect(failures[0]!.problem).toMatch(problem)
    expect(played.get('sound')?.inputs).toBe(INPUTS)
    // Played again from there, it fails with that input and no other.
    const plan = [{ target: name, inputs: failures[0]!.index! }]
    expect((await campaign(broken.path, { seed: 1, corpus: tmpdir(), plan })).failures).toEqual([])
  })

  it('that keeps memory', SLOW, async () => {
    const { failures } = await campaignAgainst(['keeping'])
    expect(failures).toMatchObject([
      { target: 'keeping', problem: expect.stringMatching(/it keeps \d+ bytes for good/) },
    ])
  })

  it('that is sound: nothing', SLOW, async () => {
    const { failures, played } = await campaignAgainst(['sound'])
    expect(failures).toEqual([])
    expect(played.get('sound')?.inputs).toBe(INPUTS)
  })
})

it('two campaigns with one seed have the same inputs, with another seed others', SLOW, async () => {
  const some = TARGETS.filter((_, index) => index % 3 === 0)
  const plan = some.map(({ name }) => ({ target: name, inputs: DIGESTED }))
  const digests = async (seed: number) => {
    const { played } = await campaign(real.path, { seed, corpus: CORPUS, plan })
    return Object.fromEntries([...played].map(([name, { digest }]) => [name, digest]))
  }
  const [first, again, other] = [await digests(1), await digests(1), await digests(2)]
  expect(again).toEqual(first)
  for (const { name } of some) expect([name, other[name]]).not.toEqual([name, first[name]])
})

it('a plan has no fewer inputs than asked for, and some for each', () => {
  for (const inputs of [1, 1000, 1_000_000]) {
    const plan = planOf(TARGETS, inputs)
    expect(plan.map(({ target }) => target)).toEqual(TARGETS.map(({ name }) => name))
    expect(plan.every((one) => one.inputs > 0)).toBe(true)
    expect(plan.reduce((sum, one) => sum + one.inputs, 0)).toBeGreaterThanOrEqual(inputs)
  }
})

it('every decoder has a name of its own', () => {
  const names = [...TARGETS, ...BROKEN].map(({ name }) => name)
  expect(new Set(names).size).toBe(names.length)
})

it('leaves out of an input what it can do without', async () => {
  expect(await smallest('abcxdefxgh', async (text) => /x.*x/.test(String(text)))).toBe('xx')
  expect(await smallest(Uint8Array.of(1, 2, 3, 4), async (bytes) => bytes.length >= 2)).toHaveLength(2)
})
