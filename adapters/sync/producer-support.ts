import type { Stream } from '../../src/api/stream.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import { attemptOutcome } from '../../src/sync/outbox-plan.ts'

/** The suffix of the id of the producer that probes a server and never stores anything. */
const PROBE_SUFFIX = '/probe'

/** How long batches are sent without a producer after the server has rejected one, in milliseconds. */
const PLAIN_MS = 600_000

/** How often a batch without a condition may be rejected for its producer before it is parked. */
const REJECTIONS_MAX = 16

/** Tracks whether a server rejects producers. */
export class ProducerSupport {
  readonly #clock: Clock
  #rejectedAt: number | undefined
  /** How often in succession the server rejected a batch without a condition. */
  #rejectionCount = 0
  /** Whether the server may have stored a probe, as it would each further one. */
  #storesProbes = false
  /** Whether the server has rejected an epoch since it stored a batch. */
  #hasRejectedEpoch = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether the server ignores producers, or has rejected them within the last ten minutes. */
  get isRejected(): boolean {
    if (this.#storesProbes) return true
    return this.#rejectedAt !== undefined && Math.abs(this.#clock.now() - this.#rejectedAt) < PLAIN_MS
  }

  /** Records that the server has rejected a producer. */
  reject(): void {
    this.#rejectedAt = this.#clock.now()
  }

  /** Records that a batch was stored. */
  accept(): void {
    this.#rejectionCount = 0
    this.#hasRejectedEpoch = false
  }

  /** Counts a rejection of a batch without a condition. Returns whether there were too many. */
  rejectsTooOften(): boolean {
    this.#rejectionCount = (this.#rejectionCount + 1) % REJECTIONS_MAX
    return this.#rejectionCount === 0
  }

  /** Records that the server has rejected an epoch. Returns whether it also rejected the one before. */
  rejectsEpochs(): boolean {
    const before = this.#hasRejectedEpoch
    this.#hasRejectedEpoch = true
    return before
  }

  /** Forgets a rejection: the server may be another one now. */
  forget(): void {
    this.#rejectedAt = undefined
  }

  /**
   * Resolves to whether a server supports producers. Sends an append that no server should store: batch 1 of
   * a producer without a batch 0. If one may have stored it, no other is sent. Rejects with transient errors.
   */
  async probe(remote: Stream, producer: string, signal: AbortSignal): Promise<boolean> {
    if (this.#storesProbes) return false
    try {
      await remote.append([{ body: '' }], {
        producer: { id: producer + PROBE_SUFFIX, epoch: 0, seq: 1 },
        signal,
      })
      this.#storesProbes = true
    } catch (cause) {
      const error = asHeadwaterError(cause)
      if (error.code === 'producer_gap') return true
      const outcome = attemptOutcome(error)
      this.#storesProbes = outcome === 'plain' && error.mayHaveEffects
      if (error.code === 'unsupported') this.reject()
      else if (outcome !== 'refused') throw error
    }
    return false
  }
}
