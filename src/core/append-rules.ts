import type { AppendBatch } from '../model/append-input.ts'
import { compareUtf8 } from '../model/bytes.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { PRODUCERS_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ProducerBatch } from '../model/producer-batch.ts'
import type { ProducerState, StreamState, WriteState } from './stream-state.ts'

/** The rules of closed streams, of producers and of `streamSeq`. */

/** A rejected batch. */
export interface Refused {
  readonly kind: 'refused'
  readonly error: HeadwaterError
}

/** A batch that is stored already, and where. */
export interface Duplicate {
  readonly kind: 'duplicate'
  readonly start: StreamPosition
  readonly end: StreamPosition
}

/** Decides about a batch that is stored already, or whose stream is closed; undefined for others. */
export function storedOutcome(state: StreamState, batch: AppendBatch): Duplicate | Refused | undefined {
  const { producer } = batch
  const { tail, writeState } = state
  const known = producer && findProducer(writeState?.producers, producer.id)
  if (producer !== undefined && known !== undefined && hasAppended(known, producer)) {
    if (producer.seq === known.seq) return { kind: 'duplicate', start: known.start, end: known.end }
    return { kind: 'refused', error: alreadyAppended(known) }
  }
  if (!writeState?.closed) return undefined
  // Closing again has no effect, except that a producer learns that the batch is not its own.
  if (producer === undefined && onlyCloses(batch)) {
    return { kind: 'duplicate', start: { seqNum: tail.seqNum - 1, timestamp: tail.timestamp }, end: tail }
  }
  const { seqNum } = tail
  return {
    kind: 'refused',
    error: new HeadwaterError('stream_closed', `the stream was closed at ${seqNum}`, { seqNum }),
  }
}

/** Returns the reason to reject a batch that is not stored, if there is one. */
export function continuationRefusal(
  { writeState }: StreamState,
  { producer, streamSeq }: AppendBatch,
  now: number,
): HeadwaterError | undefined {
  const refusal = producer && producerRefusal(writeState?.producers, producer, now)
  if (refusal !== undefined) return refusal
  const last = writeState?.streamSeq
  if (streamSeq === undefined || last === undefined || compareUtf8(streamSeq, last) > 0) return undefined
  const message = 'the sequence in `streamSeq` must be greater than that of the last append that had one'
  return new HeadwaterError('stream_seq_not_increasing', message, { field: 'streamSeq', streamSeq: last })
}

function onlyCloses(batch: AppendBatch): boolean {
  return batch.records.length === 1 && batch.records[0]!.command?.kind === 'close'
}

/** How long a producer is certainly known after its last append, in milliseconds: 7 days. */
const PRODUCER_KEPT_MS = 604_800_000

type Producers = readonly ProducerState[] | undefined

/** Returns what is known of a producer. The search begins with the latest ones. */
function findProducer(producers: Producers, id: string): ProducerState | undefined {
  return producers?.findLast((producer) => producer.id === id)
}

/** Whether the producer has appended the batch, this one or an earlier one of its epoch. */
function hasAppended(known: ProducerState | undefined, { epoch, seq }: ProducerBatch): boolean {
  return known !== undefined && known.epoch === epoch && seq <= known.seq
}

/** Returns the error of a batch that was appended before the producer's last one. */
function alreadyAppended({ seq: lastSeq }: ProducerState): HeadwaterError {
  return new HeadwaterError('already_appended', `the producer has appended its batches up to ${lastSeq}`, {
    field: 'producer',
    lastSeq,
  })
}

/** Returns the reason to reject a batch that its producer has not appended before, if there is one. */
function producerRefusal(
  producers: Producers,
  { id, epoch, seq }: ProducerBatch,
  now: number,
): HeadwaterError | undefined {
  const known = findProducer(producers, id)
  if (known === undefined) {
    if (seq !== 0) return gap(0, seq)
    const oldest = producers !== undefined && producers.length >= PRODUCERS_MAX ? producers[0] : undefined
    return oldest !== undefined && now - oldest.appendedAt < PRODUCER_KEPT_MS ? tooManyProducers() : undefined
  }
  if (epoch < known.epoch) {
    const message = `the producer has epoch ${known.epoch}, not ${epoch}`
    return new HeadwaterError('producer_fenced', message, { field: 'producer', producerEpoch: known.epoch })
  }
  if (epoch === known.epoch) return seq === known.seq + 1 ? undefined : gap(known.seq + 1, seq)
  return seq === 0 ? undefined : invalid('`producer`: a new epoch must begin with batch 0', 'producer')
}

/**
 * The state after a batch: its producer becomes the latest one. A new producer may replace the one that has
 * not appended for the longest time.
 */
export function withAppend(
  state: WriteState | undefined,
  { producer, streamSeq }: Pick<AppendBatch, 'producer' | 'streamSeq'>,
  { start, end }: { readonly start: StreamPosition; readonly end: StreamPosition },
  appendedAt: number,
): WriteState | undefined {
  if (producer === undefined && streamSeq === undefined) return state
  const { producers = [] } = state ?? {}
  if (producer === undefined) return { ...state, streamSeq }
  const { id, epoch, seq } = producer
  const others = producers.filter((one) => one.id !== id).slice(-(PRODUCERS_MAX - 1))
  return {
    ...state,
    producers: [...others, { id, epoch, seq, appendedAt, start, end }],
    ...(streamSeq !== undefined && { streamSeq }),
  }
}

function gap(expectedSeq: number, receivedSeq: number): HeadwaterError {
  return new HeadwaterError(
    'producer_gap',
    `the next batch of the producer is ${expectedSeq}, not ${receivedSeq}`,
    {
      field: 'producer',
      expectedSeq,
      receivedSeq,
    },
  )
}

function tooManyProducers(): HeadwaterError {
  const limit = PRODUCERS_MAX.toLocaleString('en-US')
  return new HeadwaterError(
    'too_many_producers',
    `the stream knows ${limit} producers that have appended within 7 days; use fewer producer ids`,
    { field: 'producer' },
  )
}
