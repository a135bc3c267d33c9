import { writeSync } from 'node:fs'
import { macrotask } from '../../../src/engine/macrotask.ts'
import type { Report } from './report.ts'
import type { Scale, Scenario } from './scenario.ts'
import { bytesInUse, countsOf, differences } from './snapshot.ts'
import { type StorageKind, World } from './world.ts'

/** What a child is told, as its argument. */
export interface Orders {
  readonly scenario: string
  readonly storage: StorageKind
  readonly scale: Scale
}

/** Code that is compiled late, caches of a few entries. */
const GROWN_BYTES_MAX = 2_097_152
/** For so many turns no file may be under way: whoever moves records from file to file has turns without. */
const QUIET_TURNS = 50

/** Plays the scenario that it was told, and tells on its standard output what came of it. */
export async function play(scenarios: readonly Scenario[]): Promise<void> {
  const { scenario: name, storage, scale }: Orders = JSON.parse(process.argv[2]!)
  const scenario = scenarios.find((one) => one.name === name)!
  const warnings: string[] = []
  process.on('warning', (warning) => warnings.push(String(warning)))
  const nothing = { counts: () => ({ timers: 0 }), signals: [] }
  // What is opened once for the life of the process is opened.
  const first = await World.open(storage, 1)
  await first.close()
  await quiet(first)
  const countsBefore = countsOf(nothing)

  const world = await World.open(storage, 1)
  await scenario.round(world, scale, 0)
  await quiet(world)
  const storedBefore = world.storedBytes
  const bytesBefore = await bytesInUse()
  const before = world.counts()
  for (let number = 1; number <= scale.rounds; number++) {
    await scenario.round(world, scale, number)
    await quiet(world)
  }
  const grownBytes = (await bytesInUse()) - bytesBefore - (world.storedBytes - storedBefore)
  const left = differences(before, world.counts())
  await world.close()
  await quiet(world)
  const report: Report = {
    left,
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
  // What was left behind is told; it must not hold the process.
  process.exit()
}

/** Sockets that were closed take some turns to go, and so does what a storage does by itself. */
async function quiet(world: World): Promise<void> {
  for (let turns = 0; turns < QUIET_TURNS; turns++) {
    const { connections, requests } = world.server.counts()
    const isBusy = process.getActiveResourcesInfo().some((kind) => kind.startsWith('FSReq'))
    if (connections > 0 || requests > 0 || isBusy) turns = 0
    await macrotask()
  }
}
