import { HeadwaterError } from '../../model/errors.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { Removal } from './removal.ts'

/** Ends the use of streams that seem to have expired, and of names that are reserved. */
export class EndedStreams {
  readonly #confirmedClock: ConfirmedClock
  readonly #removal: Removal

  constructor(confirmedClock: ConfirmedClock, removal: Removal) {
    this.#confirmedClock = confirmedClock
    this.#removal = removal
  }

  /**
   * Resolves to the document of a stream; to undefined if the stream has expired, and deletes it then.
   * Rejects with `stream_deletion_pending` if only the name is in use.
   */
  async unlessEnded(document: StreamDocument): Promise<StreamDocument | undefined> {
    const { basin, name, logId, deletedAt } = document
    if (deletedAt !== undefined) throw nameReserved(name)
    const now = await this.#confirmedClock.now()
    return (await this.#removal.expire({ basin, stream: name }, logId, now)) ? undefined : document
  }
}

function nameReserved(name: string): HeadwaterError {
  const message = `stream \`${name}\` was deleted; its name stays reserved until its forks are deleted`
  return new HeadwaterError('stream_deletion_pending', message)
}
