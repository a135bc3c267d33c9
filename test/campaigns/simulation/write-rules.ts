import type { AppendConditions } from '../../../src/model/append-input.ts'
import type { ProducerBatch } from '../../../src/model/producer-batch.ts'

/** The last batch of a producer. */
export interface LastBatch {
  readonly id: string
  readonly epoch: number
  readonly seq: number
  readonly appendedAt: number
  readonly start: { readonly seqNum: number; readonly timestamp: number }
  readonly end: { readonly seqNum: number; readonly timestamp: number }
}

/** What decides about appends beside the tail and the fencing token, in the sequential model of a stream. */
export interface WriteRules {
  readonly isClosed: boolean
  readonly streamSeq: string | undefined
  /** The latest one last. */
  readonly producers: readonly LastBatch[]
}

export const NO_RULES: WriteRules = { isClosed: false, streamSeq: undefined, producers: [] }

type Conditions = Pick<AppendConditions, 'producer' | 'streamSeq'>

export function lastBatchOf({ producers }: WriteRules, id: string): LastBatch | undefined {
  return producers.find((producer) => producer.id === id)
}

/** Returns why a batch cannot be stored now, as a clause (docs/appending.md). */
export function storingContradiction(
  rules: WriteRules,
  { producer, streamSeq }: Conditions,
): string | undefined {
  if (rules.isClosed) return 'the stream is closed'
  const known = producer && lastBatchOf(rules, producer.id)
  if (producer !== undefined) {
    const { epoch, seq } = producer
    const next = known !== undefined && epoch === known.epoch ? known.seq + 1 : 0
    if (known !== undefined && epoch < known.epoch) return `the producer has epoch ${known.epoch}`
    if (seq !== next) return `the next batch of the producer is ${next}`
  }
  const last = rules.streamSeq
  if (streamSeq !== undefined && last !== undefined && streamSeq <= last) return `the last one was ${last}`
  return undefined
}

function lastBatch(
  { id, epoch, seq }: ProducerBatch,
  { appendedAt, start, end }: Pick<LastBatch, 'appendedAt' | 'start' | 'end'>,
): LastBatch {
  return { id, epoch, seq, appendedAt, start, end }
}

/** The rules after a batch was stored. */
export function afterStoring(
  rules: WriteRules,
  { producer, streamSeq }: Conditions,
  closes: boolean,
  place: Pick<LastBatch, 'appendedAt' | 'start' | 'end'>,
): WriteRules {
  const { producers } = rules
  return {
    isClosed: rules.isClosed || closes,
    streamSeq: streamSeq ?? rules.streamSeq,
    producers:
      producer === undefined
        ? producers
        : [...producers.filter(({ id }) => id !== producer.id), lastBatch(producer, place)],
  }
}
