// @module-tag slow

import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Prng } from '../../../src/runtime/random.ts'
import { checkRecovered } from './check-recovered.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { type Loss, SimulatedDisk } from './simulated-disk.ts'
import { type History, openSimulated, runWorkload } from './workload.ts'

const SEEDS = [1, 2, 3, 4]
const LOSSES: readonly Loss[] = ['nothing', 'everything', 'some', 'reordered']
const CODES = ['EMFILE', 'EIO', 'ENOSPC']
/** So that the storage can be opened at all. */
const SOUND_OPERATIONS = 10

/** Slow and failing at once, so that calls and background work meet each other's failures. */
test.each(SEEDS)(
  'after a crash of a disk that is slow and fails, nothing acknowledged is missing (seed %i)',
  async (seed) => {
    const prng = new Prng(seed)
    const disk = new SimulatedDisk(prng)
    // A sync of `process-crash` that failed stops all writing, which faults.test.ts is about.
    const durability = seed % 3 === 0 ? 'process-crash' : 'power-loss'
    const rate = prng.pick([0.02, 0.1])
    let faults = 0
    const fault = (): string | undefined => {
      if (disk.length < SOUND_OPERATIONS || !prng.chance(rate)) return undefined
      faults++
      return prng.pick(CODES)
    }
    const files = hookedFiles(disk, async (operation) => {
      for (let turns = prng.below(3); turns > 0; turns--) await setImmediate()
      if (!['open', 'rename', 'link', 'unlink', 'syncDirectory', 'list', 'read', 'close'].includes(operation))
        return
      const code = fault()
      if (code !== undefined) throw systemError(code)
    })
    if (durability === 'power-loss') {
      disk.faults = (operation) => (operation === 'write' || operation === 'datasync' ? fault() : undefined)
    }
    const history: History = { logs: [], puts: [], reclaims: [] }
    const rollBytes = prng.pick([900, 2_000, 5_000])
    await runWorkload(disk, prng, rollBytes, history, files, durability).catch((error: Error) => {
      if (!error.message.includes('injected')) throw error
    })
    expect(faults).toBeGreaterThan(0)
    for (let count = 0; count <= disk.length; count += 1 + prng.below(4)) {
      const loss = durability === 'process-crash' ? 'nothing' : prng.pick(LOSSES)
      const crashed = disk.crashedAfter(count, loss, new Prng(seed * 1_000 + count))
      try {
        const session = await openSimulated(crashed, rollBytes)
        await checkRecovered(session, history, count)
        await session.close()
      } catch (error) {
        const crash = `after operation ${count} of ${disk.length}, losing ${loss}`
        const message = `seed ${seed} (${durability}), ${crash}: ${(error as Error).message}`
        throw new Error(message, { cause: error })
      }
    }
  },
)
