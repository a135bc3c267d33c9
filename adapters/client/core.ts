import type { StreamContext } from '../../src/api/append-session.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { RejectingQuota } from '../../src/runtime/rejecting-quota.ts'
import { SerialQueue } from '../../src/runtime/serial-queue.ts'
import { clientClosedError } from './errors.ts'
import type { Settings } from './options.ts'
import { Sender } from './sender.ts'

/** A form of read sessions: frames, or Server-Sent Events. */
export type ReadForm = 'frames' | 'events'

/** How long appends under way may take when the client is closed, in milliseconds. */
const CLOSE_MS = 5_000

interface AppendQueue {
  readonly queue: SerialQueue
  users: number
  last: object | undefined
}

/** The state that all handles of one client share. */
export class ClientCore {
  readonly settings: Settings
  /** Aborts when the client begins to close: nothing new begins, reads end, and nothing is repeated. */
  readonly closing = new SharedSignal()
  /** Aborts what the client does not wait for any longer: appends under way have a while to finish. */
  readonly #ended = new SharedSignal()
  readonly sender: Sender
  readonly streamContext: StreamContext
  /** How read sessions are sent: the forms to try, or the one that the server accepts. */
  readonly readForms: { candidates: readonly ReadForm[] }
  readonly #queues = new Map<string, AppendQueue>()
  readonly #waitingBytes: RejectingQuota
  /** Appends and append sessions, which run to their end although their caller may have left. */
  readonly #running = new Set<Promise<unknown>>()
  readonly #onClose: (() => void)[] = []

  constructor(settings: Settings) {
    this.settings = settings
    this.sender = new Sender(settings, this.closing, this.#ended)
    // Every server sends events.
    this.readForms = { candidates: ['frames', 'events'] }
    this.#waitingBytes = new RejectingQuota('limits.appendWaitingBytes', settings.limits.appendWaitingBytes)
    this.streamContext = {
      clock: settings.clock,
      closing: this.closing,
      reserve: (meteredBytes) => {
        this.#waitingBytes.acquire(meteredBytes)
        let isHeld = true
        return {
          release: () => {
            if (isHeld) this.#waitingBytes.release(meteredBytes)
            isHeld = false
          },
        }
      },
    }
  }

  /**
   * Runs the appends to one stream, or the creations of a stream or a basin, in the order of the calls.
   *
   * @param mark Identifies the append for {@link isLast}.
   */
  inOrder<Result>(stream: string, append: () => Promise<Result>, mark?: object): Promise<Result> {
    const entry: AppendQueue = this.#queues.get(stream) ?? { queue: new SerialQueue(), users: 0, last: mark }
    this.#queues.set(stream, entry)
    entry.users++
    entry.last = mark
    const result = entry.queue.runAtOnce(append)
    const end = () => {
      if (--entry.users === 0) this.#queues.delete(stream)
    }
    result.then(end, end)
    return this.untilClosed(result)
  }

  /**
   * Resolves when the earlier calls that `inOrder` runs for a stream or a basin have settled: what is called
   * after a creation must not come before it. Undefined if there are none.
   */
  settled(id: string): Promise<void> | undefined {
    return this.#queues.get(id)?.queue.run(async () => {})
  }

  /** Whether no append of the stream was called after this one, which has not settled. */
  isLast(stream: string, mark: object): boolean {
    return this.#queues.get(stream)?.last === mark
  }

  /** Calls back when the client is closed. */
  onClose(callback: () => void): void {
    this.#onClose.push(callback)
  }

  /** Makes `close` wait for work that appends. */
  untilClosed<Result>(work: Promise<Result>): Promise<Result> {
    this.#running.add(work)
    const end = () => this.#running.delete(work)
    work.then(end, end)
    return work
  }

  /**
   * Sends what producers have collected, and ends everything else. Resolves when nothing is under way any
   * more: appends that are not acknowledged after a while fail.
   */
  async close(): Promise<void> {
    this.closing.abort(clientClosedError())
    for (const callback of this.#onClose.splice(0)) callback()
    const cancel = this.settings.clock.schedule(CLOSE_MS, () => this.#ended.abort(clientClosedError()))
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
    cancel()
    this.#ended.abort(clientClosedError())
    this.sender.sessions.close()
  }
}
