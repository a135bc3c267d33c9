import { writeSync } from 'node:fs'
import { macrotask } from '../../../../src/runtime/macrotask.ts'
import { parametersOfChild } from '../../harness/run-child.ts'
import type { Report } from './report.ts'
import type { Scale, Scenario } from './scenario.ts'
import { bytesInUse, countsOf, differences } from './snapshot.ts'
import { type StorageKind, World } from './world.ts'

/** The argument of a child. */
export interface ScenarioParameters {
  readonly scenario: string
  readonly storage: StorageKind
  readonly scale: Scale
}

/** Allows for code that is compiled late and for caches of a few entries. */
const GROWN_BYTES_MAX = 2_097_152
/**
 * The number of turns without file operations after which maintenance is considered done: it has idle turns
 * itself.
 */
const QUIET_TURNS = 50

/** Runs the given scenario and prints its report. */
export async function runAll(scenarios: readonly Scenario[]): Promise<void> {
  const { scenario: name, storage, scale }: ScenarioParameters = parametersOfChild()
  const scenario = scenarios.find((candidate) => candidate.name === name)!
  const warnings: string[] = []
  process.on('warning', (warning) => warnings.push(String(warning)))
  const nothing = { counts: () => ({ timers: 0 }), signals: [] }
  // Opens everything that stays open for the life of the process.
  const first = await World.open(storage, 1)
  await first.close()
  await untilQuiet(first)
  const countsBefore = countsOf(nothing)

  const world = await World.open(storage, 1)
  await scenario.round(world, scale, 0)
  await untilQuiet(world)
  const storedBefore = world.storedBytes
  const bytesBefore = await bytesInUse()
  const before = world.counts()
  for (let number = 1; number <= scale.rounds; number++) {
    await scenario.round(world, scale, number)
    await untilQuiet(world)
  }
  const grownBytes = (await bytesInUse()) - bytesBefore - (world.storedBytes - storedBefore)
  const left = differences(before, world.counts())
  await world.close()
  await untilQuiet(world)
  const report: Report = {
    leftovers: left,
    leftAtEnd: differences(
      countsBefore,
      countsOf({
        counts: () => ({ timers: world.clock.pending }),
        signals: [world.lasting, world.hw.closing],
      }),
    ),
    grownBytes,
    grownBytesMax: GROWN_BYTES_MAX + (scenario.keptBytes ?? 0),
    peakBytes: world.peakBytes - (bytesBefore - storedBefore),
    budgetBytes: scenario.budget(scale),
    warnings,
    errors: world.errors.map(String),
  }
  writeSync(1, `${JSON.stringify(report)}\n`)
  // Leaks are in the report; they must not keep the process alive.
  process.exit()
}

/** Waits for closed sockets and for the background work of the storage, which take several turns. */
async function untilQuiet(world: World): Promise<void> {
  for (let turns = 0; turns < QUIET_TURNS; turns++) {
    const { connections, requests } = world.server.counts()
    const isBusy = process.getActiveResourcesInfo().some((kind) => kind.startsWith('FSReq'))
    if (connections > 0 || requests > 0 || isBusy) turns = 0
    await macrotask()
  }
}
