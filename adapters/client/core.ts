import type { StreamContext } from '../../src/api/stream-context.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { RejectingQuota } from '../../src/runtime/rejecting-quota.ts'
import { SerialQueue } from '../../src/runtime/serial-queue.ts'
import { clientClosedError } from './errors.ts'
import type { Settings } from './options.ts'
import { Sender } from './sender.ts'

/** A form of read sessions: frames, or Server-Sent Events. */
export type ReadForm = 'frames' | 'events'

interface AppendQueue {
  readonly queue: SerialQueue
  users: number
  last: object | undefined
}

/** The state that all handles of one client share. */
export class ClientCore {
  readonly settings: Settings
  readonly closing = new SharedSignal()
  readonly sender: Sender
  readonly streamContext: StreamContext
  /** How read sessions are sent: the forms to try, or the one that the server accepts. */
  readonly readForms: { candidates: readonly ReadForm[] }
  readonly #queues = new Map<string, AppendQueue>()
  readonly #waitingBytes: RejectingQuota
  /** Requests that run to their end although their caller may have left. */
  readonly #running = new Set<Promise<unknown>>()
  readonly #onClose: (() => void)[] = []

  constructor(settings: Settings) {
    this.settings = settings
    this.sender = new Sender(settings, this.closing)
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
   * Runs the appends of one stream one after another, in the order of the calls.
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
      this.#running.delete(result)
      if (--entry.users === 0) this.#queues.delete(stream)
    }
    this.#running.add(result)
    result.then(end, end)
    return result
  }

  /** Whether no append of the stream was called after this one, which has not settled. */
  isLast(stream: string, mark: object): boolean {
    return this.#queues.get(stream)?.last === mark
  }

  /** Calls back when the client is closed. */
  onClose(callback: () => void): void {
    this.#onClose.push(callback)
  }

  /** Ends sessions and aborts requests. Resolves when nothing is under way any more. */
  async close(): Promise<void> {
    this.closing.abort(clientClosedError())
    this.sender.sessions.close()
    for (const callback of this.#onClose.splice(0)) callback()
    await Promise.allSettled(this.#running)
  }
}
