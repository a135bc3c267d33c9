import type { HeadwaterError, StreamPosition } from '../../../src/index.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'

/** The last batch of an idempotent producer. */
interface LastBatch {
  readonly id: string
  readonly epoch: number
  readonly seq: number
  readonly appendedAt: number
  readonly start: StreamPosition
  readonly end: StreamPosition
}

/** The state of a stream in the sequential model: what decides about the next append. */
export interface StreamState {
  readonly tail: number
  /** `''` if there is none. */
  readonly fencingToken: string
  readonly isClosed: boolean
  readonly streamSeq: string | undefined
  /** The latest one last. */
  readonly producers: readonly LastBatch[]
}

export const EMPTY_STREAM: StreamState = {
  tail: 0,
  fencingToken: '',
  isClosed: false,
  streamSeq: undefined,
  producers: [],
}

/** An append, as far as the model is concerned. */
export interface ModelAppend {
  readonly conditions: AppendConditions
  readonly count: number
  /** The token that it sets. */
  readonly fence: string | undefined
  /** Whether its last record is the command that closes the stream. */
  readonly closes: boolean
}

/** What becomes of an append in a state. A refusal has the members that its error must have. */
export type Verdict =
  | { readonly kind: 'stored' }
  | { readonly kind: 'duplicate'; readonly start: number; readonly end: number }
  | { readonly kind: 'refused'; readonly error: Partial<HeadwaterError> }

/** Decides about an append (docs/protocol.md "Append conditions", docs/appending.md). */
export function verdictOn(state: StreamState, { conditions, count, closes }: ModelAppend): Verdict {
  const { producer, streamSeq, fencingToken, matchSeqNum } = conditions
  const { tail } = state
  const known = producer && state.producers.find(({ id }) => id === producer.id)
  const isSameEpoch = known !== undefined && known.epoch === producer!.epoch
  if (isSameEpoch && producer!.seq <= known.seq) {
    if (producer!.seq < known.seq) return refused({ code: 'already_appended', lastSeq: known.seq })
    return { kind: 'duplicate', start: known.start.seqNum, end: known.end.seqNum }
  }
  if (state.isClosed) {
    const closesAgain = closes && count === 1 && producer === undefined
    return closesAgain
      ? { kind: 'duplicate', start: tail - 1, end: tail }
      : refused({ code: 'stream_closed', seqNum: tail })
  }
  if (fencingToken !== undefined && fencingToken !== state.fencingToken)
    return refused({ code: 'fencing_token_mismatch', fencingToken: state.fencingToken })
  if (matchSeqNum !== undefined && matchSeqNum !== tail)
    return refused({ code: 'seq_num_mismatch', seqNum: tail })
  if (producer !== undefined) {
    if (known !== undefined && producer.epoch < known.epoch)
      return refused({ code: 'producer_fenced', producerEpoch: known.epoch })
    const next = isSameEpoch ? known.seq + 1 : 0
    if (producer.seq !== next) {
      const isGap = known === undefined || isSameEpoch
      return refused(
        isGap
          ? { code: 'producer_gap', expectedSeq: next, receivedSeq: producer.seq }
          : { code: 'invalid', field: 'producer' },
      )
    }
  }
  const last = state.streamSeq
  if (streamSeq !== undefined && last !== undefined && streamSeq <= last)
    return refused({ code: 'stream_seq_not_increasing', streamSeq: last })
  return { kind: 'stored' }
}

function refused(error: Partial<HeadwaterError>): Verdict {
  return { kind: 'refused', error }
}

/** Returns the state after an append was stored. */
export function afterAppend(
  state: StreamState,
  { conditions: { producer, streamSeq }, count, fence, closes }: ModelAppend,
  place: Pick<LastBatch, 'appendedAt' | 'start' | 'end'>,
): StreamState {
  const { appendedAt, start, end } = place
  const others = state.producers.filter(({ id }) => id !== producer?.id)
  return {
    tail: state.tail + count,
    fencingToken: fence ?? state.fencingToken,
    isClosed: state.isClosed || closes,
    streamSeq: streamSeq ?? state.streamSeq,
    producers: producer === undefined ? others : [...others, lastBatch(producer, { appendedAt, start, end })],
  }
}

function lastBatch(
  { id, epoch, seq }: NonNullable<AppendConditions['producer']>,
  { appendedAt, start, end }: Pick<LastBatch, 'appendedAt' | 'start' | 'end'>,
): LastBatch {
  return { id, epoch, seq, appendedAt, start, end }
}
