import type { AppendBatch } from '../model/append-input.ts'
import { compareUtf8 } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { StreamPosition } from '../model/position.ts'
import { alreadyAppended, findProducer, hasAppended, producerRefusal } from './producers.ts'
import type { StreamState } from './stream-state.ts'

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

/**
 * Decides about a batch before its records are looked at; undefined if it may be stored. In this order
 * (docs/protocol.md "Append conditions"): whether its producer has appended it, whether the stream is closed,
 * the fencing token, the producer's epoch and batch number, the sequence number, the `streamSeq`.
 */
export function checkAppend(
  state: StreamState,
  batch: AppendBatch,
  now: number,
): Duplicate | Refused | undefined {
  const { producer } = batch
  const { writeState } = state
  if (producer !== undefined) {
    const known = findProducer(writeState?.producers, producer.id)
    if (known !== undefined && hasAppended(known, producer)) {
      if (producer.seq === known.seq) return { kind: 'duplicate', start: known.start, end: known.end }
      return { kind: 'refused', error: alreadyAppended(known) }
    }
  }
  if (writeState?.closed) {
    // Closing again has no effect, except that a producer learns that the batch is not its own.
    if (producer === undefined && onlyCloses(batch)) return lastRecord(state)
    return { kind: 'refused', error: streamClosed(state) }
  }
  const error = refusalOf(state, batch, now)
  return error && { kind: 'refused', error }
}

function refusalOf(state: StreamState, batch: AppendBatch, now: number): HeadwaterError | undefined {
  const { fencingToken, matchSeqNum, producer, streamSeq } = batch
  if (fencingToken !== undefined && fencingToken !== state.fencingToken) {
    return new HeadwaterError('fencing_token_mismatch', 'the stream has another fencing token', {
      field: 'fencingToken',
      fencingToken: state.fencingToken,
    })
  }
  const refusal = producer && producerRefusal(state.writeState?.producers, producer, now)
  if (refusal !== undefined) return refusal
  if (matchSeqNum !== undefined && matchSeqNum !== state.tail.seqNum) {
    return new HeadwaterError(
      'seq_num_mismatch',
      `the next record gets sequence number ${state.tail.seqNum}, not ${matchSeqNum}`,
      { field: 'matchSeqNum', seqNum: state.tail.seqNum },
    )
  }
  const last = state.writeState?.streamSeq
  if (streamSeq !== undefined && last !== undefined && compareUtf8(streamSeq, last) <= 0) {
    const message = '`streamSeq` must be greater than that of the last append that had one'
    return new HeadwaterError('stream_seq_not_increasing', message, { field: 'streamSeq', streamSeq: last })
  }
  return undefined
}

function onlyCloses(batch: AppendBatch): boolean {
  // Lines are no commands.
  return (
    batch.lines === undefined && batch.records.length === 1 && batch.records[0]!.command?.kind === 'close'
  )
}

function lastRecord({ tail }: StreamState): Duplicate {
  return { kind: 'duplicate', start: { seqNum: tail.seqNum - 1, timestamp: tail.timestamp }, end: tail }
}

function streamClosed({ tail }: StreamState): HeadwaterError {
  return new HeadwaterError('stream_closed', `the stream was closed at ${tail.seqNum}`, {
    seqNum: tail.seqNum,
  })
}
