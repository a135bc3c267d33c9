import type { SessionAppender } from '../../../src/api/append-session.ts'
import { discardedError } from '../../../src/api/errors.ts'
import type { AppendBatch } from '../../../src/model/append-input.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { AppendAck } from '../../../src/model/info.ts'
import { Fifo } from '../../../src/runtime/fifo.ts'
import type { AppendRequests } from '../append-requests.ts'
import type { ClientCore } from '../core.ts'
import { NotDuplex, unexpectedResponse, withEffects } from '../errors.ts'
import { pause, pauseMs } from '../retry.ts'
import { SessionAppends } from '../session-appends.ts'
import type { RemoteTarget } from '../stream-target.ts'
import { type AppendLink, type AppendLinkListener, openAppendLink } from './append-link.ts'
import { FrameMemory } from './frame-upload.ts'

/**
 * Opens the appender of a session over HTTP/2. Resolves to undefined if the server does not speak it, or
 * takes no append sessions.
 */
export async function openStreamAppender(
  core: ClientCore,
  target: RemoteTarget,
  requests: AppendRequests,
): Promise<SessionAppender | undefined> {
  const memory = new FrameMemory()
  const open = () => requests.creatingStream(() => openLink(core, target, memory))
  const link = await open()
  if (link === undefined) return undefined
  return new StreamAppender(link, requests, async () => {
    const next = await open()
    if (next === undefined) throw unexpectedResponse('it takes no append sessions any more', false)
    return next
  })
}

/** Opens a connection, again after transient failures. Resolves to undefined if the server takes none. */
async function openLink(
  core: ClientCore,
  target: RemoteTarget,
  memory: FrameMemory,
): Promise<AppendLink | undefined> {
  const { clock, onRetry, random, retries } = core.settings
  for (let repetition = 1; ; repetition++) {
    const opened = await openAppendLink(core, target, memory)
    if (opened === undefined || !('error' in opened)) return opened
    const { error, isTransient, retryAfterMs } = opened
    if (error.cause instanceof NotDuplex) return undefined
    if (!isTransient || repetition > retries) throw error
    const ms = pauseMs(repetition, retryAfterMs, random())
    onRetry(error, ms)
    await pause(clock, ms, [core.closing])
  }
}

/** A connection of the session. */
interface BatchLink {
  start(listener: AppendLinkListener): void
  send(batch: AppendBatch): void
  end(): void
}

interface Pending {
  readonly batch: AppendBatch
  readonly acked: (ack: AppendAck) => void
  readonly failed: (error: unknown) => void
  wasSent: boolean
}

/**
 * Appends the batches of a session over one connection in both directions. If it is lost, the batches that
 * may be stored are appended again where their conditions allow it; otherwise the session fails.
 */
class StreamAppender implements SessionAppender {
  readonly group = new SessionAppends()
  readonly #requests: Pick<AppendRequests, 'repeat'>
  readonly #open: () => Promise<BatchLink>
  /** Batches without an ack, in order. */
  readonly #pending = new Fifo<Pending>()
  #link: BatchLink | undefined
  /**
   * Whether the connection takes no further batches: it is left once those that were sent are acknowledged.
   */
  #isLeaving = false
  #isReconnecting = false
  #isReleased = false

  /** @param open Opens another connection. */
  constructor(link: BatchLink, requests: Pick<AppendRequests, 'repeat'>, open: () => Promise<BatchLink>) {
    this.#requests = requests
    this.#open = open
    this.#use(link)
  }

  append(batch: AppendBatch, _reservation: unknown, started: () => void): Promise<AppendAck> {
    return new Promise((acked, failed) => {
      if (this.group.failed) {
        failed(discardedError(this.group.failure))
        return
      }
      const pending: Pending = { batch, acked, failed, wasSent: false }
      this.#pending.push(pending)
      if (this.#link === undefined) void this.#reconnect()
      else if (!this.#isLeaving) this.#send(pending, this.#link)
      started()
    })
  }

  release(): void {
    this.#isReleased = true
    this.#link?.end()
    this.#link = undefined
  }

  #use(link: BatchLink): void {
    this.#link = link
    this.#isLeaving = false
    link.start({
      onAck: (ack) => {
        this.#pending.shift()?.acked(ack)
        if (this.#isLeaving) this.#leave(link)
      },
      onAdvice: () => {
        this.#isLeaving = true
      },
      onEnd: (error, isLost) => this.#ended(link, error, isLost),
    })
    for (const pending of this.#pending) this.#send(pending, link)
  }

  #send(pending: Pending, link: BatchLink): void {
    pending.wasSent = true
    link.send(pending.batch)
  }

  /** Leaves a connection that owes no acks. Batches that wait are sent over another one. */
  #leave(link: BatchLink): void {
    const [first] = this.#pending
    if (this.#link !== link || first?.wasSent) return
    this.#link = undefined
    link.end()
    if (first !== undefined) void this.#reconnect()
  }

  #ended(link: BatchLink, error: HeadwaterError, isLost: boolean): void {
    if (this.#link !== link) return
    this.#link = undefined
    if (this.#isReleased) return
    // What the server did not acknowledge, it did not take.
    if (error.code === 'server_draining') for (const pending of this.#pending) pending.wasSent = false
    if (!isLost) this.#fail(error)
    else if (this.#pending.length > 0) void this.#reconnect(error)
  }

  /** The first batch fails, and nothing is known to be stored of those behind it. */
  #fail(error: unknown): void {
    this.group.fail(error)
    const [first, ...behind] = this.#pending.clear()
    if (first === undefined) return
    const isUnknown = first.wasSent && !(HeadwaterError.is(error) && !error.mayHaveEffects)
    first.failed(HeadwaterError.is(error) ? withEffects(error, isUnknown) : error)
    for (const { failed, wasSent } of behind) failed(isUnknown && wasSent ? error : discardedError(error))
  }

  /** Settles what may be stored, one batch at a time, then sends the others over another connection. */
  async #reconnect(lost?: HeadwaterError): Promise<void> {
    if (this.#isReconnecting) return
    this.#isReconnecting = true
    try {
      for (let first = this.#pending.first; first?.wasSent === true; first = this.#pending.first) {
        if (first.batch.matchSeqNum === undefined) throw lost
        const ack = await this.#requests.repeat(first.batch)
        this.#pending.shift()
        first.acked(ack)
      }
      const link = await this.#open()
      if (this.#isReleased) link.end()
      else this.#use(link)
    } catch (error) {
      this.#fail(error)
    } finally {
      this.#isReconnecting = false
    }
  }
}
