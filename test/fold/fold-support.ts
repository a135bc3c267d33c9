import { onTestFinished } from 'vitest'
import { type Fold, type FoldOptions, fold } from '../../adapters/fold/index.ts'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import {
  type Engine,
  type Headwater,
  open,
  type Storage,
  type Stream,
  type TextRecord,
} from '../../src/index.ts'
import { EMPTY_SCAN, type FoldSnapshot, scanSnapshots } from '../../src/sync/fold-snapshot.ts'
import { temporaryDirectory } from '../storage/filesystem/directories.ts'

/** The storages that folds are tested on. Each call of the function makes another one. */
export const STORAGES: readonly (readonly [name: string, create: () => Promise<Storage>])[] = [
  ['memory', async () => memory()],
  ['filesystem', async () => filesystem(await temporaryDirectory(), { durability: 'process-crash' })],
]

/** An engine with a basin and a stream. */
export async function openLog(storage: Storage = memory()) {
  const clock = virtualClock({ now: 1_000_000 })
  const hw = await open({ storage, clock })
  onTestFinished(() => hw.close())
  await hw.ensureBasin('app')
  return { hw, clock, log: logOf(hw) }
}

/** The stream that is folded. */
export function logOf(hw: Headwater): Stream {
  return hw.basin('app').stream('log')
}

/** The stream of the snapshots of {@link foldText}. */
export function snapshotsOf(hw: Engine): Stream {
  return hw.basin('app').stream('.fold/default/log')
}

/** The complete snapshots that are stored. */
export async function storedSnapshots(hw: Engine): Promise<readonly FoldSnapshot[]> {
  if (!(await snapshotsOf(hw).exists())) return []
  return scanSnapshots(EMPTY_SCAN, await snapshotsOf(hw).read({}, { as: 'bytes' }).toArray()).complete
}

/** Reduces records to their bodies, and counts the calls. */
export function joiner() {
  const reducer = {
    calls: 0,
    reduce: (text: string, { body }: TextRecord) => {
      reducer.calls++
      return `${text}${body} `
    },
  }
  return reducer
}

/** A fold of bodies, which fails the test if a snapshot fails. */
export function foldText(log: Stream, options: Partial<FoldOptions<string, TextRecord>> = {}): Fold<string> {
  const made = fold(log, {
    initial: '',
    reduce: joiner().reduce,
    version: 1,
    onSnapshotError: (error) => {
      throw error
    },
    ...options,
  })
  onTestFinished(() => made.close())
  return made
}
