import type { HeadwaterError } from '../../../../src/index.ts'
import type { AppendConditions, ProducerBatch } from '../../../../src/model/append-input.ts'
import type { Prng } from '../../../../src/runtime/random.ts'
import type { AppendAttempt } from '../append-attempt.ts'

const RECENT_MAX = 4

interface Belief {
  tail: number
  readonly tokens: string[]
  /** The epoch and the next batch of each producer. */
  readonly producers: Map<string, { readonly epoch: number; readonly next: number }>
}

/**
 * What the writers believe about the streams. They share it, so that several of them compete for the same
 * position, token or batch.
 */
export class Beliefs {
  readonly #beliefs = new Map<string, Belief>()
  /** A number means the same batch for ever, through whichever engine it is appended. */
  readonly #batches = new Map<string, AppendAttempt>()
  #lastStreamSeq = 0

  /** Mostly the current tail. */
  tail(prng: Prng, stream: string): number {
    const { tail } = this.#of(stream)
    return prng.chance(0.85) ? tail : Math.max(0, tail + prng.below(5) - 2)
  }

  /** Draws conditions that mostly hold, with these probabilities. */
  conditions(
    prng: Prng,
    stream: string,
    { matches = 0, fences = 0, streamSeqs = 0 }: { matches?: number; fences?: number; streamSeqs?: number },
  ): AppendConditions {
    const { tokens } = this.#of(stream)
    return {
      ...(prng.chance(matches) && { matchSeqNum: this.tail(prng, stream) }),
      ...(prng.chance(fences) && {
        fencingToken: prng.chance(0.8) ? tokens.at(-1)! : prng.pick(tokens),
      }),
      ...(prng.chance(streamSeqs) && { streamSeq: this.#streamSeq(prng) }),
    }
  }

  /** Draws a batch of a producer: usually the next one, or one again whose outcome may be unknown. */
  batch(prng: Prng, stream: string, id: string): ProducerBatch {
    const { epoch, next } = this.#producer(stream, id)
    const kind = prng.next()
    if (kind < 0.07) return { id, epoch: epoch + 1, seq: kind < 0.055 ? 0 : 1 }
    if (kind < 0.15 && epoch > 0) return { id, epoch: epoch - 1, seq: prng.below(3) }
    if (kind < 0.2) return { id, epoch, seq: next + 1 + prng.below(2) }
    if (kind < 0.5) return { id, epoch, seq: Math.max(0, next - prng.below(RECENT_MAX)) }
    return { id, epoch, seq: next }
  }

  /** The attempt to append a batch of a producer earlier. */
  earlier(stream: string, batch: ProducerBatch): AppendAttempt | undefined {
    return this.#batches.get(keyOf(stream, batch))
  }

  began(attempt: AppendAttempt): void {
    const { stream, conditions } = attempt
    if (conditions.producer !== undefined) this.#batches.set(keyOf(stream, conditions.producer), attempt)
  }

  acknowledged({ stream, fence, conditions: { producer } }: AppendAttempt, end: number): void {
    const belief = this.#of(stream)
    belief.tail = Math.max(belief.tail, end)
    if (fence !== undefined) belief.tokens.push(fence)
    if (producer === undefined) return
    const { epoch, next } = this.#producer(stream, producer.id)
    if (producer.epoch < epoch) return
    const last = producer.epoch > epoch ? 0 : next
    this.#learn(stream, producer.id, producer.epoch, Math.max(last, producer.seq + 1))
  }

  rejected({ stream, conditions: { producer } }: AppendAttempt, error: Partial<HeadwaterError>): void {
    const { code, seqNum, fencingToken, expectedSeq, lastSeq, producerEpoch } = error
    const belief = this.#of(stream)
    if (code === 'seq_num_mismatch') belief.tail = seqNum!
    if (code === 'fencing_token_mismatch') belief.tokens.push(fencingToken!)
    if (producer === undefined) return
    const { id, epoch } = producer
    if (producerEpoch !== undefined) this.#learn(stream, id, producerEpoch, 1)
    else if (expectedSeq !== undefined) this.#learn(stream, id, epoch, expectedSeq)
    else if (lastSeq !== undefined) this.#learn(stream, id, epoch, lastSeq + 1)
  }

  /** Usually greater than those before. */
  #streamSeq(prng: Prng): string {
    this.#lastStreamSeq += prng.below(3)
    const number = this.#lastStreamSeq - (prng.chance(0.2) ? prng.below(4) : 0)
    return `n${String(Math.max(0, number)).padStart(6, '0')}`
  }

  #of(stream: string): Belief {
    const belief = this.#beliefs.get(stream) ?? { tail: 0, tokens: [''], producers: new Map() }
    this.#beliefs.set(stream, belief)
    return belief
  }

  #producer(stream: string, id: string): { readonly epoch: number; readonly next: number } {
    return this.#of(stream).producers.get(id) ?? { epoch: 0, next: 0 }
  }

  #learn(stream: string, id: string, epoch: number, next: number): void {
    this.#of(stream).producers.set(id, { epoch, next })
  }
}

function keyOf(stream: string, { id, epoch, seq }: ProducerBatch): string {
  return `${epoch}/${seq} of ${id} of ${stream}`
}
