import type { StreamRef } from '../../model/names.ts'
import type { SharedSignal } from '../../runtime/abort.ts'
import { streamKey } from '../../storage/documents.ts'
import { closedError, deletedError } from '../log/errors.ts'
import type { StreamCache } from '../log/stream-cache.ts'
import type { StreamLease, StreamLog } from '../log/stream-log.ts'
import { streamNotFound } from './errors.ts'
import type { StreamCreator } from './stream-creator.ts'
import type { CreationPolicy } from './stream-target.ts'

/** How often a name is resolved again while others delete and recreate the stream. */
export const RESOLVE_ATTEMPTS_MAX = 10

export type Purpose = 'append' | 'read'

/** A stream to open by name, the purpose, and the policy if it does not exist. */
export interface OpenRequest {
  readonly ref: StreamRef
  readonly creation: CreationPolicy
}

interface Waiter extends OpenRequest {
  readonly opened: (log: StreamLog) => void
  readonly failed: (error: unknown) => void
}

/**
 * Resolves the name of a stream, creating the stream where that is allowed. Concurrent callers share one
 * look-up.
 */
export class StreamOpener {
  readonly #cache: StreamCache
  readonly #creator: StreamCreator
  readonly #closing: SharedSignal
  /** The callers of each look-up, in order. */
  readonly #waiters = new Map<string, Waiter[]>()

  constructor(cache: StreamCache, creator: StreamCreator, closing: SharedSignal) {
    this.#cache = cache
    this.#creator = creator
    this.#closing = closing
  }

  /**
   * Leases the stream, with the head that the storage has now: it stays the one object for its log until
   * `release` is called.
   */
  async lease(request: OpenRequest, purpose: Purpose): Promise<StreamLease> {
    for (let i = 0; i < RESOLVE_ATTEMPTS_MAX; i++) {
      const cached = this.#closing.aborted ? undefined : this.get(request.ref)
      const lease =
        cached?.lease() ??
        (await new Promise<StreamLease>((resolve, reject) => {
          this.open(request, purpose, (log) => resolve(log.lease()), reject)
        }))
      try {
        if (await lease.log.refresh()) return lease
      } catch (error) {
        lease.release()
        throw error
      }
      lease.release()
    }
    throw deletedError()
  }

  /**
   * Returns the stream if it is cached and no name is being resolved: a call must not overtake those that
   * wait.
   */
  get(ref: StreamRef): StreamLog | undefined {
    return this.#waiters.size === 0 ? this.#cache.get(ref) : undefined
  }

  /**
   * Calls `opened` with the stream: synchronously if it is cached. Calls for one name and purpose complete in
   * the order in which they were made, so that appends keep their order while a name is being resolved.
   * Closing the engine fails reads at once, and waits for appends.
   */
  open(
    request: OpenRequest,
    purpose: Purpose,
    opened: (log: StreamLog) => void,
    failed: (error: unknown) => void,
  ): void {
    if (this.#isOver(purpose)) {
      failed(closedError())
      return
    }
    const { ref, creation } = request
    // Other look-ups may wait for a creation, which may wait for this one.
    const key = `${purpose}\0${creation.never ? 'never' : ''}\0${streamKey(ref.basin, ref.stream)}`
    const waiter = { ref, creation, opened, failed }
    const waiters = this.#waiters.get(key)
    if (waiters !== undefined) {
      waiters.push(waiter)
      return
    }
    const log = this.#cache.get(ref)
    if (log !== undefined) opened(log)
    else this.#lookUp(key, purpose, [waiter])
  }

  #lookUp(key: string, purpose: Purpose, waiters: Waiter[]): void {
    const first = waiters[0]!
    const other = waiters.findIndex((waiter) => !isSameRequest(waiter, first))
    const sameCount = other === -1 ? waiters.length : other
    this.#waiters.set(key, waiters)
    this.#findOrCreate(first, purpose).then(
      ({ log, release }) => {
        const isOver = this.#isOver(purpose)
        this.#notify(key, waiters, ({ opened, failed }) => (isOver ? failed(closedError()) : opened(log)))
        release()
      },
      (error: unknown) => {
        // Later callers may succeed: the stream may exist by now, or they may be allowed to create it.
        const later = waiters.splice(sameCount)
        // Why a storage that is being closed failed does not matter.
        const reason = this.#isOver(purpose) ? closedError() : error
        this.#notify(key, waiters, ({ failed }) => failed(reason))
        if (later.length > 0) this.#lookUp(key, purpose, later)
      },
    )
  }

  #notify(key: string, waiters: Waiter[], notify: (waiter: Waiter) => void): void {
    // A call made by a callback still joins the end of the queue.
    for (const waiter of waiters) notify(waiter)
    this.#waiters.delete(key)
  }

  #isOver(purpose: Purpose): boolean {
    return purpose === 'read' && this.#closing.aborted
  }

  async #findOrCreate({ ref, creation }: OpenRequest, purpose: Purpose): Promise<StreamLease> {
    const create = () => {
      if (this.#isOver(purpose)) throw closedError()
      if (creation.never) throw streamNotFound(ref)
      return this.#creator.createOnUse(ref, purpose, creation)
    }
    for (let i = 0; i < RESOLVE_ATTEMPTS_MAX; i++) {
      const lease = await this.#cache.findOrCreate(ref, create)
      if (lease !== undefined) return lease
    }
    throw deletedError()
  }
}

/** Whether a failed look-up fails for both. */
function isSameRequest(one: OpenRequest, other: OpenRequest): boolean {
  return (
    one.creation.always === other.creation.always &&
    one.creation.config === other.creation.config &&
    one.creation.isConfigDenied === other.creation.isConfigDenied &&
    one.ref.shownAs === other.ref.shownAs
  )
}
