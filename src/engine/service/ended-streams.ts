import { expiresAt } from '../../core/expiry.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { Removal } from './removal.ts'

export interface EndedStreamsContext {
  readonly session: Pick<StorageSession, 'head'>
  readonly clock: Clock
  readonly confirmedClock: ConfirmedClock
}

/** Finds out whether streams that expire, or whose names are reserved, can still be used. */
export class EndedStreams {
  readonly #context: EndedStreamsContext
  readonly #removal: Removal

  constructor(context: EndedStreamsContext, removal: Removal) {
    this.#context = context
    this.#removal = removal
  }

  /**
   * Resolves to the document of a stream; to undefined if the stream has expired, and deletes it then.
   * Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async unlessEnded(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { session, clock, confirmedClock } = this.#context
    const { basin, name, logId, expiry, createdAt, readAt, deletedAt } = document
    if (deletedAt !== undefined) throw nameReserved(name)
    const head = await session.head(logId)
    // Deleted meanwhile, which its user notices.
    if (head === undefined) return document
    const at = expiresAt(expiry!, { createdAt, readAt, appendedAt: head.appendedAt })
    if (at > clock.now()) return document
    const now = await confirmedClock.now()
    return (await this.#removal.expire({ basin, stream: name }, logId, now)) ? undefined : document
  }
}

function nameReserved(name: string): HeadwaterError {
  const message = `stream \`${name}\` was deleted; its name stays reserved until its forks are deleted`
  return new HeadwaterError('stream_deletion_pending', message)
}
