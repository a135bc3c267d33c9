import { expiresAt, isReadRecorded } from '../../core/expiry.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LazyModule } from '../../runtime/lazy-module.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { StreamLog } from '../log/stream-log.ts'
import type { EndedStreams } from './removal.ts'

/** The control plane's part in expiry: loaded when a stream seems to have expired, or to record a read. */
interface ExpiryControl {
  readonly ended: Pick<EndedStreams, 'unlessEnded'>
  readonly streams: {
    /** Stores the time of a read, in milliseconds. */
    recordRead(ref: StreamRef, logId: string, readAt: number): Promise<void>
  }
}

type KnownUse = Pick<StreamLog, 'document' | 'head' | 'readAt'>

interface StreamExpiryContext {
  readonly session: Pick<StorageSession, 'head'>
  readonly control: LazyModule<ExpiryControl>
  readonly clock: Clock
  readonly onBackgroundError: (error: unknown) => void
}

/** Makes expired streams disappear when they are next used, and records the reads that keep others. */
export class ExpiryChecks {
  readonly #context: StreamExpiryContext
  #recorded: Promise<void> = Promise.resolve()

  constructor(context: StreamExpiryContext) {
    this.#context = context
  }

  /** Resolves when the reads so far are recorded. */
  get recorded(): Promise<void> {
    return this.#recorded
  }

  /**
   * Resolves to the document of a stream that was found by its name, or to undefined if the stream has
   * expired: it is deleted then. Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async live(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { session, control } = this.#context
    const { deletedAt, expiry, logId, readAt } = document
    if (deletedAt === undefined) {
      const head = expiry && (await session.head(logId))
      // One without a head was deleted meanwhile, which its user notices.
      if (head === undefined || !this.isOverdue({ document, head, readAt })) return document
    }
    return (await control.load()).ended.unlessEnded(document)
  }

  /**
   * Whether a stream that can expire has expired by what is known of it here, unless another engine has used
   * it.
   */
  isOverdue({ document, head, readAt }: KnownUse): boolean {
    const { expiry, createdAt } = document
    const { appendedAt } = head
    return expiresAt(expiry!, { createdAt, appendedAt, readAt }) <= this.#context.clock.now()
  }

  /** Records a read if it is time to. */
  noteRead(log: StreamLog): void {
    const { document, head, readAt } = log
    const { basin, name, logId, expiry, createdAt } = document
    if (expiry === undefined) return
    const { clock, control, onBackgroundError } = this.#context
    const now = clock.now()
    if (!isReadRecorded(expiry, { createdAt, appendedAt: head.appendedAt, readAt }, now)) return
    log.noteReadAt(now)
    const recording = control
      .load()
      .then(({ streams }) => streams.recordRead({ basin, stream: name }, logId, now))
      .catch((error) => {
        // The next read is recorded instead.
        log.readAt = readAt
        onBackgroundError(error)
      })
    this.#recorded = this.#recorded.then(() => recording)
  }
}
