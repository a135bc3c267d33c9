import { HeadwaterError } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'

/** How long clients may take to leave by themselves once they are advised to, in milliseconds. */
const LEAVE_MS = 1_000
/** How long sessions may take to send what they owe once they are ended, in milliseconds. */
const END_MS = 1_000

/** An open session over HTTP. */
export interface DrainableSession {
  /** Advises the client to reconnect, with every further frame; at once if one can be sent at any time. */
  advise(): void
  /** Ends the session with the error, behind what it owes. */
  end(error: HeadwaterError): void
}

/**
 * The open sessions of a server, which end before it stops: clients are advised to reconnect, which may take
 * them to another server, and those that stay are ended.
 */
export class SessionDrain {
  readonly #sessions = new Set<DrainableSession>()
  #drained: Promise<void> | undefined
  #onEmpty: (() => void) | undefined

  /** Adds a session, which ends at once if the server is about to stop. */
  add(session: DrainableSession): void {
    this.#sessions.add(session)
    if (this.#drained !== undefined) session.end(drainingError())
  }

  delete(session: DrainableSession): void {
    this.#sessions.delete(session)
    if (this.#sessions.size === 0) this.#onEmpty?.()
  }

  /**
   * Calls `read`, which waits. Once the server is about to stop, it aborts that call and makes another that
   * waits for 1 ms, so that the reply is that of a wait without an append. `left` aborts both.
   */
  async wait<Result>(
    left: AbortSignal,
    waitMs: number,
    read: (waitMs: number, signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const waiting = new AbortController()
    const stop = () => waiting.abort()
    const session = { advise: stop, end: stop }
    const unlisten = onAbort(left, stop)
    this.add(session)
    try {
      return await read(waitMs, waiting.signal)
    } catch (error) {
      if (!waiting.signal.aborted) throw error
      return await read(Math.min(waitMs, 1), left)
    } finally {
      unlisten()
      this.delete(session)
    }
  }

  /** Throws `server_draining` once the server is about to stop. */
  assertOpen(): void {
    if (this.#drained !== undefined) throw drainingError()
  }

  /**
   * Ends all sessions. Resolves when none is open, or after 2 seconds at the latest. Later calls return the
   * same promise.
   *
   * @param graceMs How long the server waits before it drops connections, in milliseconds.
   */
  drain(graceMs = Number.POSITIVE_INFINITY): Promise<void> {
    this.#drained ??= this.#drain(Math.min(LEAVE_MS, graceMs / 2))
    return this.#drained
  }

  async #drain(leaveMs: number): Promise<void> {
    for (const session of this.#sessions) session.advise()
    await this.#emptyWithin(leaveMs)
    for (const session of this.#sessions) session.end(drainingError())
    await this.#emptyWithin(END_MS)
  }

  #emptyWithin(ms: number): Promise<void> {
    if (this.#sessions.size === 0) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.#onEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function drainingError(): HeadwaterError {
  return new HeadwaterError('server_draining', 'the server is about to stop; connect again')
}
