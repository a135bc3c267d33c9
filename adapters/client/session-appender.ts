import type { SessionAppender } from '../../src/api/append-session.ts'
import { discardedError } from '../../src/api/errors.ts'
import { type AppendBatch, ownBytes } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { AppendGroup } from './append-group.ts'
import type { AppendRequests } from './append-requests.ts'
import type { ClientCore } from './core.ts'
import type { StreamTarget } from './stream-target.ts'
import { tailOf } from './tail.ts'

/**
 * Opens the appender of a session: over HTTP/2 where the runtime and the server have it. Rejects with
 * `stream_not_found` unless the stream exists or is created.
 */
export async function openAppender(
  core: ClientCore,
  target: StreamTarget,
  requests: AppendRequests,
): Promise<SessionAppender> {
  if (core.sender.sessions.isDuplex) {
    const { openStreamAppender } = await import('./node/node-sessions.ts')
    const appender = await openStreamAppender(core, target, requests)
    if (appender !== undefined) return appender
  }
  try {
    await requests.creatingStream(() => tailOf(core, target))
  } catch (error) {
    // A token that permits appends only: the first append finds out.
    if (!HeadwaterError.is(error) || error.code !== 'permission_denied') throw error
  }
  return new RequestAppender(core, target, requests)
}

/**
 * Appends each batch by a request of its own, once the one before is acknowledged. Two requests at a time
 * could be reordered, and no condition prevents it: another writer may store just as many records as the
 * batch that failed, so that the condition of the next one holds.
 */
class RequestAppender implements SessionAppender {
  readonly group = new AppendGroup()
  readonly #core: ClientCore
  readonly #target: StreamTarget
  readonly #requests: AppendRequests

  constructor(core: ClientCore, target: StreamTarget, requests: AppendRequests) {
    this.#core = core
    this.#target = target
    this.#requests = requests
  }

  append(batch: AppendBatch, _reservation: unknown, started: () => void): Promise<AppendAck> {
    ownBytes(batch)
    started()
    return this.#core.inOrder(this.#target.id, async () => {
      this.#core.closing.throwIfAborted()
      if (this.group.failed) throw discardedError(this.group.failure)
      try {
        return await this.#requests.append(batch)
      } catch (error) {
        // Before the next one begins.
        this.group.fail(error)
        throw error
      }
    })
  }

  release(): void {}
}
