import type { SessionAppender } from '../../src/api/append-session.ts'
import { discardedError } from '../../src/api/errors.ts'
import { type AppendBatch, ownBytes } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import type { AppendRequests } from './append-requests.ts'
import { BatchGroup } from './batch-group.ts'
import type { ClientCore } from './core.ts'
import { SessionAppends } from './session-appends.ts'
import type { RemoteTarget } from './stream-target.ts'

/**
 * Appends the batches of a session by requests, one at a time. Batches that wait meanwhile are sent together.
 *
 * Two requests at a time could be reordered, and no condition prevents it: another writer may store just as
 * many records as the batch that failed, so that the condition of the next one holds.
 */
export class RequestAppender implements SessionAppender {
  readonly group = new SessionAppends()
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #requests: AppendRequests
  /** Batches that wait for the request before them. */
  #waiting: BatchGroup | undefined

  constructor(core: ClientCore, target: RemoteTarget, requests: AppendRequests) {
    this.#core = core
    this.#target = target
    this.#requests = requests
  }

  append(batch: AppendBatch, _reservation: unknown, started: () => void): Promise<AppendAck> {
    ownBytes(batch)
    started()
    const { id } = this.#target
    const waiting = this.#waiting
    // Another append of the stream that was called in between must come in between.
    if (waiting !== undefined && this.#core.isLast(id, waiting) && waiting.takes(batch)) {
      return waiting.add(batch)
    }
    const next = new BatchGroup()
    const acked = next.add(batch)
    this.#waiting = next
    void this.#core.inOrder(id, () => this.#send(next), next)
    return acked
  }

  release(): void {}

  /** Appends the batches of a group. Resolves when they are settled. */
  async #send(sent: BatchGroup): Promise<void> {
    if (this.#waiting === sent) this.#waiting = undefined
    try {
      sent.resolve(await this.#append(sent.joined()))
    } catch (error) {
      // The batch that the server rejects is found by appending them one at a time.
      const isRejected = HeadwaterError.is(error) && !error.mayHaveEffects && !error.retryable
      if (sent.batches.length > 1 && isRejected && !this.group.failed && !this.#core.closing.aborted) {
        await this.#appendEach(sent)
        return
      }
      // Before the next one begins.
      this.group.fail(error)
      const isUnknown = HeadwaterError.is(error) && error.mayHaveEffects
      sent.reject(error, isUnknown ? error : discardedError(this.group.failure))
    }
  }

  async #appendEach({ batches }: BatchGroup): Promise<void> {
    for (const { batch, acked, failed } of batches) {
      try {
        acked(await this.#append(batch))
      } catch (error) {
        this.group.fail(error)
        failed(error)
      }
    }
  }

  async #append(batch: AppendBatch): Promise<AppendAck> {
    this.#core.closing.throwIfAborted()
    if (this.group.failed) throw discardedError(this.group.failure)
    return this.#requests.append(batch)
  }
}
