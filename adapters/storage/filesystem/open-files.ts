import type { Clock } from '../../../src/runtime/clock.ts'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import { FileCache } from './files/file-cache.ts'
import type { Files } from './files/files.ts'
import { Reserve } from './files/reserve.ts'
import { Committer } from './journal/committer.ts'
import { JournalBlockReader } from './journal/journal-blocks.ts'
import { LogReader } from './log-reader.ts'
import { Maintenance } from './maintenance/maintenance.ts'
import { Reclaimer } from './maintenance/reclaimer.ts'
import { UnresolvedRolls } from './maintenance/unresolved-rolls.ts'
import { PartReader } from './part-reader.ts'
import { recover } from './recovery.ts'
import { RunReader } from './segment/run-reader.ts'
import { SharedStorage } from './shared-storage.ts'

export interface OpenFilesOptions {
  readonly durability: 'power-loss' | 'process-crash'
  /** The size at which journals are rolled, in bytes. Derived from the size of the state by default. */
  readonly rollBytes?: number | undefined
  /** The size from which blocks are not copied when journals are rolled, in bytes. 128 KiB by default. */
  readonly largeBlockBytes?: number | undefined
  /** How many runs a group of a compaction replaces. 64 by default. */
  readonly groupRuns?: number | undefined
  /** The space that is reserved for a full disk, in bytes. 4 MiB by default. */
  readonly reserveBytes?: number | undefined
}

/** The environment of an opening. */
export interface OpenContext {
  readonly clock?: Clock | undefined
  /** Whether the disk is known to be full. */
  readonly isFull?: boolean | undefined
}

/** Opens the storage in these files, which nothing else may have open. Calls `release` on close. */
export async function openStorage(
  files: Files,
  { durability, rollBytes, largeBlockBytes, groupRuns, reserveBytes }: OpenFilesOptions,
  release: () => Promise<void>,
  { clock, isFull = false }: OpenContext = {},
): Promise<SharedStorage> {
  const reserve = await Reserve.open(files, isFull, reserveBytes)
  const { state, journals, checkpoint } = await recover(files, reserve, durability === 'process-crash')
  const handles = new FileCache(files)
  const parts = new PartReader()
  const runs = new RunReader(handles, parts)
  const rollQueue = new SerialQueue()
  const unresolvedRolls = new UnresolvedRolls(files)
  const reader = new LogReader(handles, runs, new JournalBlockReader(handles, parts))
  const maintenance = new Maintenance({
    clock,
    files,
    handles,
    state,
    journals,
    reserve,
    reader: runs,
    rollQueue,
    unresolvedRolls,
    checkpoint,
    rollBytes,
    largeBlockBytes,
    groupRuns,
  })
  const committer = new Committer(state, journals, reserve, maintenance)
  const reclaimer = new Reclaimer(state, committer, runs, unresolvedRolls)
  maintenance.start(committer)
  return new SharedStorage({
    state,
    journals,
    reserve,
    handles,
    committer,
    maintenance,
    reader,
    reclaimer,
    rollQueue,
    release,
  })
}
