import type { Clock } from '../../../src/runtime/clock.ts'
import { SerialQueue } from '../../../src/runtime/serial-queue.ts'
import type { StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import { FileCache } from './files/file-cache.ts'
import type { Files } from './files/files.ts'
import { Reserve } from './files/reserve.ts'
import { Committer } from './journal/committer.ts'
import { JournalBlockReader } from './journal/journal-blocks.ts'
import type { Journals } from './journal/journals.ts'
import { LogReader } from './log-reader.ts'
import { UnresolvedRolls } from './maintenance/failed-rolls.ts'
import { Maintenance } from './maintenance/maintenance.ts'
import { Reclaimer } from './maintenance/reclaimer.ts'
import { PartReader } from './part-reader.ts'
import { recover } from './recovery.ts'
import { RunReader } from './segment/run-reader.ts'
import { FilesystemSession, type SessionStorage, Sessions } from './session.ts'

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

interface StorageParts extends Omit<SessionStorage, 'sessions' | 'isClosed' | 'leave'> {
  readonly journals: Journals
  readonly handles: FileCache
  /** Releases the directory. */
  readonly release: () => Promise<void>
}

/** The open files of a directory. Each engine that shares them has a session of its own. */
export class SharedStorage {
  readonly #parts: StorageParts
  readonly #sessions = new Sessions()
  readonly #sessionStorage: SessionStorage
  #closing: Promise<void> | undefined

  constructor(parts: StorageParts) {
    this.#parts = parts
    const isClosed = () => this.#closing !== undefined
    this.#sessionStorage = {
      ...parts,
      sessions: this.#sessions,
      get isClosed() {
        return isClosed()
      },
      leave: (session) => this.#leave(session),
    }
  }

  /** Returns undefined if the storage is closing, or if nothing more can be written before it is reopened. */
  open(onLogChanged: StorageContext['onLogChanged']): StorageSession | undefined {
    if (this.#closing !== undefined || this.#parts.committer.failure !== undefined) return undefined
    const session = new FilesystemSession(this.#sessionStorage, onLogChanged)
    this.#sessions.add(session)
    return session
  }

  /** Makes everything written so far durable, and everything later before it is acknowledged. */
  requireSync(): Promise<void> {
    const { committer, journals } = this.#parts
    return committer.runExclusively(() => journals.requireSync())
  }

  /** Waits for the calls in flight. Later calls of all sessions reject. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #leave(session: FilesystemSession): Promise<void> {
    this.#sessions.remove(session)
    if (this.#sessions.isEmpty) await this.close()
  }

  /** Runs all steps, and then rejects with the first failure. */
  async #close(): Promise<void> {
    const { committer, maintenance, journals, reserve, handles, release } = this.#parts
    // Not worth releasing the reserve, which the next opening may need.
    const close = () =>
      committer.commit(
        0,
        () => [{ kind: 'closed' }],
        reserve.isMissing,
        () => undefined,
      )
    const steps = [
      () => this.#sessions.idle(),
      () => maintenance.close(),
      () => journals.prepareClose(),
      // Without the closing group, the next opening must assume that the last group is not durable, which
      // only takes longer.
      () => journals.isWritten && close().catch(() => {}),
      () => committer.idle(),
      () => reserve.idle(),
      () => journals.close(),
      () => handles.close(),
      release,
    ]
    const failures: unknown[] = []
    for (const step of steps) {
      try {
        await step()
      } catch (error) {
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}
