import type { StreamContext } from '../../src/api/append-session.ts'
import { SharedSignal } from '../../src/runtime/abort.ts'
import { SerialQueue } from '../../src/runtime/queues.ts'
import { RejectingQuota } from '../../src/runtime/quotas.ts'
import { clientClosedError } from './errors.ts'
import type { Settings } from './options.ts'
import { Sender } from './sender.ts'

/** How long appends under way may take when the client is closed, in milliseconds. */
const CLOSE_MS = 5_000

interface CallQueue {
  readonly queue: SerialQueue
  /** Calls that have not settled. */
  calls: number
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
  readonly #queues = new Map<string, CallQueue>()
  readonly #waitingBytes: RejectingQuota
  /** Appends and append sessions, which run to their end although their caller may have left. */
  readonly #running = new Set<Promise<unknown>>()

  constructor(settings: Settings) {
    this.settings = settings
    this.sender = new Sender(settings, this.closing, this.#ended)
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
   * Makes creations of a basin, or creations of and appends to a stream, in the order of the calls. Those of
   * a stream come after the creations of its basin that were called before.
   *
   * @param mark Identifies the call for {@link isLast}.
   */
  inOrder<Result>(
    [basin, stream]: readonly [basin: string, stream?: string],
    call: () => Promise<Result>,
    mark?: object,
  ): Promise<Result> {
    if (stream === undefined) return this.#enqueue(basin, call)
    const created = this.#queues.get(basin)?.queue.run(async () => {})
    const inBasin = async () => {
      await created
      return call()
    }
    return this.#enqueue(`${basin}/${stream}`, created === undefined ? call : inBasin, mark)
  }

  /** Whether no other call was made in the order of the stream after this one, which has not settled. */
  isLast([basin, stream]: readonly [basin: string, stream: string], mark: object): boolean {
    return this.#queues.get(`${basin}/${stream}`)?.last === mark
  }

  #enqueue<Result>(id: string, call: () => Promise<Result>, mark?: object): Promise<Result> {
    const entry: CallQueue = this.#queues.get(id) ?? { queue: new SerialQueue(), calls: 0, last: undefined }
    this.#queues.set(id, entry)
    entry.calls++
    entry.last = mark
    const result = entry.queue.runAtOnce(call)
    const end = () => {
      if (--entry.calls === 0) this.#queues.delete(id)
    }
    result.then(end, end)
    return this.untilClosed(result)
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
    const cancel = this.settings.clock.schedule(CLOSE_MS, () => this.#ended.abort(clientClosedError()))
    while (this.#running.size > 0) await Promise.allSettled(this.#running)
    cancel()
    this.#ended.abort(clientClosedError())
    this.sender.close()
  }
}
