import type { Stream } from '../../src/api/stream.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import { attemptOutcome } from '../../src/sync/outbox-plan.ts'

/** The suffix of the id of the producer that probes a server and never stores anything. */
export const PROBE_SUFFIX = '/probe'

/** How long batches are sent without a producer after the server has rejected one, in milliseconds. */
const PLAIN_MS = 600_000

/** Tracks whether a server rejects producers. */
export class ProducerSupport {
  readonly #clock: Clock
  #rejectedAt: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the server has rejected producers within the last ten minutes. */
  get isRejected(): boolean {
    return this.#rejectedAt !== undefined && Math.abs(this.#clock.now() - this.#rejectedAt) < PLAIN_MS
  }

  /** Records that the server has rejected a producer. */
  reject(): void {
    this.#rejectedAt = this.#clock.now()
  }

  /** Forgets a rejection: the server may be another one now. */
  forget(): void {
    this.#rejectedAt = undefined
  }

  /**
   * Resolves to whether a server knows producers. Sends an append that no server stores: batch 1 of a
   * producer without a batch 0. Rejects with transient errors.
   */
  async probe(remote: Stream, device: string, signal: AbortSignal): Promise<boolean> {
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
