import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { campaignOf, replayCommand, seedsFrom } from '../harness/campaign.ts'
import { Progress } from '../harness/progress.ts'
import { checkHistory } from './check-history.ts'
import type { History } from './operations.ts'
import type { Workload } from './record-history.ts'

const { options, runsAll } = campaignOf('linearizability', {
  histories: 2,
  // The second one has several streams.
  seed: 3,
})

/** Only ends what hangs: a history takes seconds. */
const TIMEOUT_MS = 600_000

/** Mostly with one stream, where clients conflict the most. */
function workloadOf(seed: number): Workload {
  return {
    seed,
    streams: seed % 4 === 0 ? ['a', 'b', 'c'] : ['a'],
    clients: Array.from({ length: 10 }, (_, client) => client),
    operationsPerClient: 40,
  }
}

/** Records and checks a history of the target for each seed. */
export function campaign(target: string, record: (workload: Workload) => Promise<History>): void {
  describe(target, () => {
    const progress = new Progress({ name: target, runsAll }, 'histories', options.histories)
    const counts: Record<string, number> = {}

    it.each(seedsFrom(options.seed, options.histories))('seed %d', { timeout: TIMEOUT_MS }, async (seed) => {
      const workload = workloadOf(seed)
      const history = await record(workload)
      assertComplete(history, workload)
      for (const { outcome } of history) counts[outcome.kind] = (counts[outcome.kind] ?? 0) + 1
      const finding = checkHistory(history)
      if (finding === undefined) return progress.pass()
      progress.fail()
      expect.fail(report(finding, target, seed, history))
    })

    afterAll(() => progress.close(JSON.stringify(counts)))
  })
}

/** A history in which a client does not finish, or nothing succeeds, would prove nothing. */
export function assertComplete(history: History, { clients, operationsPerClient }: Workload): void {
  for (const client of clients) {
    expect(history.filter((recorded) => recorded.client === client).length).toBe(operationsPerClient)
  }
  const kinds = new Set(history.map(({ outcome }) => outcome.kind))
  for (const kind of ['appended', 'read', 'tail'] as const) expect(kinds).toContain(kind)
}

function report(finding: string, target: string, seed: number, history: History): string {
  const path = join(tmpdir(), `headwater-${target.replaceAll(/[^a-z0-9]+/gi, '-')}-${seed}.jsonl`)
  writeFileSync(path, history.map((recorded) => `${JSON.stringify(recorded)}\n`).join(''))
  return [
    finding,
    `The whole history: ${path}`,
    `Replay the workload: ${replayCommand('linearizability', { target, seed, histories: 1 })}`,
  ].join('\n')
}
