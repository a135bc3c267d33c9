import type { StorageContext, StorageSession } from '../../../src/storage/contract.ts'
import type { FileCache } from './files/file-cache.ts'
import type { Journals } from './journal/journals.ts'
import { FilesystemSession, type SessionStorage, Sessions } from './session.ts'

export interface StorageParts extends Omit<SessionStorage, 'sessions' | 'isClosed' | 'leave'> {
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
