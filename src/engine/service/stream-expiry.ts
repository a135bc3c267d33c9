import { expiresAt, isReadRecorded } from '../../core/expiry.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { StreamLog } from '../log/stream-log.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'

export interface StreamExpiryContext {
  readonly session: Pick<StorageSession, 'head'>
  /** Deletes the stream if it has expired at `now`. Resolves to whether it is deleted. */
  readonly expire: (ref: StreamRef, logId: string, now: number) => Promise<boolean>
  /** Stores the time of a read, in milliseconds. */
  readonly recordRead: (ref: StreamRef, logId: string, readAt: number) => Promise<void>
  readonly clock: Clock
  readonly confirmedClock: ConfirmedClock
  readonly onBackgroundError: (error: unknown) => void
}

/** Makes expired streams disappear when they are next used, and records the reads that keep others. */
export class ExpiryChecks {
  readonly #context: StreamExpiryContext

  constructor(context: StreamExpiryContext) {
    this.#context = context
  }

  /**
   * Returns the document of a stream that was found by its name, or undefined if the stream has expired: it
   * is deleted then. Throws or rejects with `stream_deletion_pending` if only the name is in use.
   */
  live(document: StreamDocument): MaybePromise<StreamDocument | undefined> {
    if (document.deletedAt !== undefined) throw nameReserved(document)
    return document.expiry === undefined ? document : this.#unlessExpired(document)
  }

  /** Whether a cached stream has expired, unless another engine has used it. */
  isOverdue({ document, head, readAt }: StreamLog): boolean {
    const { expiry, createdAt } = document
    if (expiry === undefined) return false
    const { appendedAt } = head
    return expiresAt(expiry, { createdAt, appendedAt, readAt }) <= this.#context.clock.now()
  }

  /** Records a read if it is time to. */
  noteRead(log: StreamLog): void {
    const { document, head, readAt } = log
    const now = this.#context.clock.now()
    const { expiry, createdAt } = document
    if (!isReadRecorded(expiry, { createdAt, appendedAt: head.appendedAt, readAt }, now)) return
    log.noteReadAt(now)
    void this.#record(document, now)
  }

  async #record({ basin, name, logId }: StreamDocument, now: number): Promise<void> {
    const { recordRead, onBackgroundError } = this.#context
    try {
      await recordRead({ basin, stream: name }, logId, now)
    } catch (error) {
      onBackgroundError(error)
    }
  }

  async #unlessExpired(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { session, clock, confirmedClock, expire } = this.#context
    const { basin, name, logId, expiry, createdAt, readAt } = document
    const head = await session.head(logId)
    // Deleted meanwhile, which its user notices.
    if (head === undefined) return document
    const at = expiresAt(expiry!, { createdAt, readAt, appendedAt: head.appendedAt })
    if (at > clock.now()) return document
    const now = await confirmedClock.now()
    return (await expire({ basin, stream: name }, logId, now)) ? undefined : document
  }
}

function nameReserved({ name }: StreamDocument): HeadwaterError {
  const message = `stream \`${name}\` was deleted; its name stays reserved until its forks are deleted`
  return new HeadwaterError('stream_deletion_pending', message)
}
