import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { checkHistory, type Finding } from './check-history.ts'
import { describeFinding } from './describe-finding.ts'
import { historyLines } from './history-lines.ts'
import type { History, Outcome } from './operations.ts'

/** `npm run linearizability` sets these; `npm test` has the defaults. */
const { LINEARIZABILITY_HISTORIES, LINEARIZABILITY_SEED, LINEARIZABILITY_DIRECTORY } = process.env
const HISTORIES = Number(LINEARIZABILITY_HISTORIES ?? 8)
const FIRST_SEED = Number(LINEARIZABILITY_SEED ?? 1)

/** A history takes a second or two; a busy machine, and one that runs other tests beside, may take many times as long. */
const TIMEOUT_MS = 120_000

/** Few histories need not hold all that may come of operations. */
export const TELLS_OF_ALL_OUTCOMES = HISTORIES >= 20

const CLIENTS = 10
const OPERATIONS_PER_CLIENT = 100

/** What is done in the history of a seed: in most on one stream, where clients are in each other's way the most. */
export function workloadOf(seed: number) {
  return {
    seed,
    streams: seed % 4 === 0 ? ['a', 'b', 'c'] : ['a'],
    clients: Array.from({ length: CLIENTS }, (_, client) => client),
    operationsPerClient: OPERATIONS_PER_CLIENT,
  }
}

/** Records and checks histories of a target, one for each seed. The outcomes given must be in them, or they tell too little. */
export function campaign(
  target: string,
  outcomes: readonly Outcome['kind'][],
  record: (seed: number) => Promise<History>,
): void {
  describe(target, () => {
    const seen = new Set<Outcome['kind']>()
    const seeds = Array.from({ length: HISTORIES }, (_, index) => FIRST_SEED + index)

    it.each(seeds)('seed %d', { timeout: TIMEOUT_MS }, async (seed) => {
      const history = await record(seed)
      expect(history.length).toBeGreaterThanOrEqual(CLIENTS * OPERATIONS_PER_CLIENT)
      for (const { outcome } of history) seen.add(outcome.kind)
      if (LINEARIZABILITY_DIRECTORY !== undefined) write(LINEARIZABILITY_DIRECTORY, target, seed, history)
      const finding = checkHistory(history)
      if (finding !== undefined) expect.fail(report(finding, target, seed, history))
    })

    afterAll(() => {
      if (TELLS_OF_ALL_OUTCOMES) expect([...seen]).toEqual(expect.arrayContaining([...outcomes]))
    })
  })
}

function report(finding: Finding, target: string, seed: number, history: History): string {
  const paths = write(join(tmpdir(), 'headwater-linearizability'), target, seed, history)
  return [
    describeFinding(finding),
    `The whole history: ${paths.join(', ')}`,
    `The same workload again: npm run linearizability -- --target '${target}' --seed ${seed} --histories 1`,
  ].join('\n')
}

/** A file for each stream. */
function write(directory: string, target: string, seed: number, history: History): string[] {
  mkdirSync(directory, { recursive: true })
  const streams = new Set(history.map(({ stream }) => stream))
  return [...streams].map((stream) => {
    const path = join(directory, `${target.replaceAll(/[^a-z0-9]+/gi, '-')}.${seed}.${stream}.jsonl`)
    writeFileSync(path, historyLines(history.filter((recorded) => recorded.stream === stream)))
    return path
  })
}
