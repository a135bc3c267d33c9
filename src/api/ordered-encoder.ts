import { assertSignal } from '../model/validation.ts'
import { unlessAborted } from '../runtime/abort.ts'
import { isPromise, type MaybePromise } from '../runtime/maybe-promise.ts'
import { SerialQueue } from '../runtime/serial-queue.ts'
import { type CallOptions, signalOf } from './call-options.ts'

/** Passes encoded values on in the order of the calls, although schemas may validate asynchronously. */
export class OrderedEncoder {
  readonly #queue = new SerialQueue()
  #waiting = 0

  /**
   * Calls `send` with what was encoded: synchronously if nothing waits. Does not wait for what it returns.
   * Rejects with the reason of a signal that aborts before, and sends nothing then.
   */
  async run<Encoded, Sent>(
    encoded: MaybePromise<Encoded>,
    send: (encoded: Encoded) => Promise<Sent>,
    signal?: AbortSignal,
  ): Promise<Sent> {
    if (!isPromise(encoded) && this.#waiting === 0) return send(encoded)
    const encoding = Promise.resolve(encoded)
    // Its rejection is handled when its turn comes.
    encoding.catch(() => {})
    if (signal !== undefined) assertSignal(signal, 'signal')
    this.#waiting++
    let sent: Promise<Sent> | undefined
    await this.#queue.run(async () => {
      try {
        sent = send(await unlessAborted(signal, encoding))
        sent.catch(() => {})
      } finally {
        this.#waiting--
      }
    })
    return sent!
  }

  /** Resolves when everything that was encoded so far has been passed on, unless the signal aborts first. */
  idle(options?: CallOptions): Promise<void> {
    return unlessAborted(
      signalOf(options),
      this.#queue.run(async () => {}),
    )
  }
}

/** Encodes one value. */
export type Encode<Input> = (value: Input) => MaybePromise<string>
