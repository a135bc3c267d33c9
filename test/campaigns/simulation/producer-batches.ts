import type { HeadwaterError } from '../../../src/index.ts'
import type { ProducerBatch } from '../../../src/model/producer-batch.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { AppendAttempt } from './append-attempt.ts'

const RECENT_MAX = 4

/**
 * The batches of the idempotent producers of all streams. A number means the same batch for ever, through
 * whichever engine it is appended.
 */
export class ProducerBatches {
  readonly #batches = new Map<string, AppendAttempt>()
  readonly #believed = new Map<string, Belief>()

  /** Chooses a batch: usually the next one, or one again whose outcome may be unknown. */
  draw(prng: Prng, stream: string, id: string): ProducerBatch {
    const { epoch, next } = this.#belief(stream, id)
    const kind = prng.next()
    if (kind < 0.07) return { id, epoch: epoch + 1, seq: kind < 0.055 ? 0 : 1 }
    if (kind < 0.15 && epoch > 0) return { id, epoch: epoch - 1, seq: prng.below(3) }
    if (kind < 0.2) return { id, epoch, seq: next + 1 + prng.below(2) }
    if (kind < 0.5) return { id, epoch, seq: Math.max(0, next - prng.below(RECENT_MAX)) }
    return { id, epoch, seq: next }
  }

  known(stream: string, batch: ProducerBatch): AppendAttempt | undefined {
    return this.#batches.get(keyOf(stream, batch))
  }

  add(stream: string, batch: ProducerBatch, attempt: AppendAttempt): void {
    this.#batches.set(keyOf(stream, batch), attempt)
  }

  acknowledged(stream: string, { id, epoch, seq }: ProducerBatch): void {
    const belief = this.#belief(stream, id)
    if (epoch > belief.epoch) this.#believe(stream, id, { epoch, next: seq + 1 })
    else if (epoch === belief.epoch)
      this.#believe(stream, id, { epoch, next: Math.max(belief.next, seq + 1) })
  }

  rejected(stream: string, { id, epoch }: ProducerBatch, error: Partial<HeadwaterError>): void {
    const { expectedSeq, lastSeq, producerEpoch } = error
    if (producerEpoch !== undefined) this.#believe(stream, id, { epoch: producerEpoch, next: 1 })
    else if (expectedSeq !== undefined) this.#believe(stream, id, { epoch, next: expectedSeq })
    else if (lastSeq !== undefined) this.#believe(stream, id, { epoch, next: lastSeq + 1 })
  }

  #belief(stream: string, id: string): Belief {
    return this.#believed.get(`${id} of ${stream}`) ?? { epoch: 0, next: 0 }
  }

  #believe(stream: string, id: string, belief: Belief): void {
    this.#believed.set(`${id} of ${stream}`, belief)
  }
}

/** What the writers believe about a producer. */
interface Belief {
  readonly epoch: number
  readonly next: number
}

function keyOf(stream: string, { id, epoch, seq }: ProducerBatch): string {
  return `${epoch}/${seq} of ${id} of ${stream}`
}
