import type { Stream } from '../../src/api/stream.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import { attemptOutcome } from '../../src/sync/outbox-plan.ts'

/** What the name of a producer that never appends adds to that of the device. */
export const PROBE_SUFFIX = '/probe'

/** How long batches are sent without a producer to a server that rejects producers, in milliseconds. */
const PLAIN_MS = 600_000

/** What a sender knows of a server: whether it rejects producers. */
export class ProducerSupport {
  readonly #clock: Clock
  #rejectedAt: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether batches are sent without a producer. */
  get isRejected(): boolean {
    return this.#rejectedAt !== undefined && Math.abs(this.#clock.now() - this.#rejectedAt) < PLAIN_MS
  }

  /** Notes that the server has rejected producers. */
  reject(): void {
    this.#rejectedAt = this.#clock.now()
  }

  /** Forgets what is known: the server may be another one. */
  forget(): void {
    this.#rejectedAt = undefined
  }

  /**
   * Asks a server whether it knows producers. The append that finds out is stored by none, because it is
   * batch 1 of a producer that has no batch 0. Rejects with errors that pass.
   */
  async isOffered(remote: Stream, device: string, signal: AbortSignal): Promise<boolean> {
    try {
      await remote.append([{ body: '' }], {
        producer: { id: device + PROBE_SUFFIX, epoch: 0, seq: 1 },
        signal,
      })
    } catch (cause) {
      const error = asHeadwaterError(cause)
      if (error.code === 'producer_gap') return true
      if (error.code === 'unsupported') this.reject()
      else if (attemptOutcome(error) !== 'refused') throw error
    }
    return false
  }
}
