import type { StorageSession } from '../../../src/storage/contract.ts'
import { Committer } from './committer.ts'
import type { Files } from './files.ts'
import { Handles } from './handles.ts'
import { JournalBlocks } from './journal-blocks.ts'
import { LogReader } from './log-reader.ts'
import { Maintenance } from './maintenance.ts'
import { Reclaimer } from './reclaimer.ts'
import { recover } from './recovery.ts'
import { RunReader } from './run-reader.ts'
import { FilesystemSession } from './session.ts'
import { Turns } from './turns.ts'
import { UndecidedRolls } from './undecided-rolls.ts'

export interface OpenOptions {
  readonly durability: 'sync' | 'os'
  /** When journals are rolled, in bytes. Default: by the size of the state. */
  readonly rollBytes?: number
  /** From what length on blocks are not copied when journals are rolled, in bytes. Default: 128 KiB. */
  readonly largeBlockBytes?: number
}

/** Opens what is in the files, which nobody else may have open. `release` is called when it is closed. */
export async function openFiles(
  files: Files,
  { durability, rollBytes, largeBlockBytes }: OpenOptions,
  release: () => Promise<void>,
): Promise<StorageSession> {
  const { state, journals, checkpointBytes } = await recover(files, durability === 'os')
  const handles = new Handles(files)
  const runs = new RunReader(handles)
  const turns = new Turns()
  const undecided = new UndecidedRolls(files)
  const reader = new LogReader(handles, runs, new JournalBlocks(handles))
  const maintenance = new Maintenance({
    files,
    handles,
    state,
    journals,
    reader: runs,
    turns,
    undecided,
    checkpointBytes,
    rollBytes,
    largeBlockBytes,
  })
  const committer = new Committer(state, journals, maintenance)
  const reclaimer = new Reclaimer(state, committer, runs, undecided)
  maintenance.start(committer)
  return new FilesystemSession({
    state,
    journals,
    handles,
    committer,
    maintenance,
    reader,
    reclaimer,
    turns,
    release,
  })
}
