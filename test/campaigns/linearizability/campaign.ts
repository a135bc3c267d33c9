import { mkdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { campaignOf, replayCommand, seedsFrom } from '../harness/campaign.ts'
import { checkHistory, type Finding } from './check-history.ts'
import { describeFinding } from './describe-finding.ts'
import { historyLines } from './history-lines.ts'
import type { History, Outcome } from './operations.ts'

const { options } = campaignOf('linearizability', {
  histories: 2,
  // The second one has several streams.
  seed: 3,
  write: undefined as string | undefined,
})

/** A history takes one or two seconds, and many times as long on a busy machine. */
const TIMEOUT_MS = 600_000

/** The number of histories that may lack some of the outcomes. */
export const HAS_ALL_OUTCOMES = options.histories >= 20

const CLIENTS = 10
const OPERATIONS_PER_CLIENT = 100

/** Mostly with one stream, where clients conflict the most. */
export function workloadOf(seed: number) {
  return {
    seed,
    streams: seed % 4 === 0 ? ['a', 'b', 'c'] : ['a'],
    clients: Array.from({ length: CLIENTS }, (_, client) => client),
    operationsPerClient: OPERATIONS_PER_CLIENT,
  }
}

/**
 * Records and checks a history of the target for each seed. Fails unless the histories contain the given
 * outcomes: otherwise they would prove too little.
 */
export function campaign(
  target: string,
  outcomes: readonly Outcome['kind'][],
  record: (seed: number) => Promise<History>,
): void {
  describe(target, () => {
    const seen = new Set<Outcome['kind']>()
    const seeds = seedsFrom(options.seed, options.histories)

    it.each(seeds)('seed %d', { timeout: TIMEOUT_MS }, async (seed) => {
      const history = await record(seed)
      expect(history.length).toBeGreaterThanOrEqual(CLIENTS * OPERATIONS_PER_CLIENT)
      for (const { outcome } of history) seen.add(outcome.kind)
      if (options.write !== undefined) write(options.write, target, seed, history)
      const finding = checkHistory(history)
      if (finding !== undefined) expect.fail(report(finding, target, seed, history))
    })

    afterAll(() => {
      if (HAS_ALL_OUTCOMES) expect([...seen]).toEqual(expect.arrayContaining([...outcomes]))
    })
  })
}

function report(finding: Finding, target: string, seed: number, history: History): string {
  const paths = write(join(tmpdir(), 'headwater-linearizability'), target, seed, history)
  return [
    describeFinding(finding),
    `The whole history: ${paths.join(', ')}`,
    `Replay the workload: ${replayCommand('linearizability', { target, seed, histories: 1 })}`,
  ].join('\n')
}

/** Writes a file for each stream. */
function write(directory: string, target: string, seed: number, history: History): string[] {
  mkdirSync(directory, { recursive: true })
  const streams = new Set(history.map(({ stream }) => stream))
  return [...streams].map((stream) => {
    const path = join(directory, `${target.replaceAll(/[^a-z0-9]+/gi, '-')}.${seed}.${stream}.jsonl`)
    writeFileSync(path, historyLines(history.filter((recorded) => recorded.stream === stream)))
    return path
  })
}
