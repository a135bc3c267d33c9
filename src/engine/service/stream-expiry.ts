import { expiresAt, isReadRecorded } from '../../core/expiry.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { MaybePromise } from '../../runtime/maybe-promise.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { StreamLog } from '../log/stream-log.ts'

export interface StreamExpiryContext {
  /** Looks at a stream that may have ended: see `ended-streams.ts`. */
  readonly unlessEnded: (document: StreamDocument) => Promise<StreamDocument | undefined>
  /** Stores the time of a read, in milliseconds. */
  readonly recordRead: (ref: StreamRef, logId: string, readAt: number) => Promise<void>
  readonly clock: Clock
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
   * is deleted then. Rejects with `stream_deletion_pending` if only the name is in use.
   */
  live(document: StreamDocument): MaybePromise<StreamDocument | undefined> {
    const isPlain = document.deletedAt === undefined && document.expiry === undefined
    return isPlain ? document : this.#context.unlessEnded(document)
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
}
