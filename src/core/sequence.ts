import type { AppendBatch } from '../model/append-input.ts'
import type { Cipher, StreamConfig } from '../model/config.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { SequencedRecord } from '../model/record.ts'
import {
  continuationRefusal,
  type Duplicate,
  type Refused,
  storedOutcome,
  withAppend,
} from './append-rules.ts'
import { applyCommand, type StreamState } from './stream-state.ts'

/** A batch with its positions. */
export interface Sequenced {
  readonly kind: 'sequenced'
  readonly records: readonly SequencedRecord[]
  readonly next: StreamState
  readonly start: StreamPosition
  readonly end: StreamPosition
}

/**
 * The number of records that may be encrypted with random nonces under one AES-256-GCM key (docs/protocol.md
 * "Limit of AES-256-GCM").
 */
const AES_GCM_SEQ_NUM_MAX = 0xff_ff_ff_ff

/**
 * Assigns sequence numbers and timestamps to a batch, or rejects it as a whole, or finds it stored already.
 * Checks the conditions, then each record (docs/protocol.md "Append conditions"). Commands in the batch take
 * effect after the checks. `now` is in milliseconds.
 */
export function sequence(
  state: StreamState,
  batch: AppendBatch,
  config: Pick<StreamConfig, 'timestamping'> & { readonly cipher: Cipher | null },
  now: number,
): Sequenced | Duplicate | Refused {
  const stored = storedOutcome(state, batch)
  if (stored !== undefined) return stored
  const isConditional = batch.fencingToken !== undefined || batch.matchSeqNum !== undefined
  const refusal = isConditional ? checkConditions(state, batch) : undefined
  if (refusal !== undefined) return refuse(refusal)
  const continuation = continuationRefusal(state, batch, now)
  if (continuation !== undefined) return refuse(continuation)

  const records: SequencedRecord[] = []
  let next = state
  let seqNum = state.tail.seqNum
  let timestamp = state.tail.timestamp
  const recordMax = config.cipher === 'aes-256-gcm' ? AES_GCM_SEQ_NUM_MAX : INTEGER_MAX - 1
  for (const record of batch.records) {
    const seqNumMax = record.command ? INTEGER_MAX - 1 : recordMax
    if (seqNum > seqNumMax) {
      return refuse(invalid(`max assignable sequence number is ${seqNumMax}; attempted ${seqNum}`, 'records'))
    }
    const assigned = assignTimestamp(record.timestamp, timestamp, config.timestamping, now)
    if (assigned === undefined) return refuseWithoutTimestamp()
    timestamp = assigned
    const sequenced = { seqNum, timestamp, headers: record.headers, body: record.body }
    records.push(record.command ? { ...sequenced, command: record.command } : sequenced)
    if (record.command) next = applyCommand(next, record.command, seqNum)
    seqNum++
  }
  const start = { seqNum: state.tail.seqNum, timestamp: records[0]!.timestamp }
  const end = { seqNum, timestamp }
  const writeState = withAppend(next.writeState, batch, { start, end }, now)
  return {
    kind: 'sequenced',
    records,
    next: { tail: end, trimPoint: next.trimPoint, fencingToken: next.fencingToken, writeState },
    start,
    end,
  }
}

function checkConditions(state: StreamState, batch: AppendBatch): HeadwaterError | undefined {
  const { fencingToken, matchSeqNum } = batch
  if (fencingToken !== undefined && fencingToken !== state.fencingToken) {
    return new HeadwaterError('fencing_token_mismatch', 'the stream has another fencing token', {
      field: 'fencingToken',
      fencingToken: state.fencingToken,
    })
  }
  if (matchSeqNum !== undefined && matchSeqNum !== state.tail.seqNum) {
    return new HeadwaterError(
      'seq_num_mismatch',
      `the next record gets sequence number ${state.tail.seqNum}, not ${matchSeqNum}`,
      { field: 'matchSeqNum', seqNum: state.tail.seqNum },
    )
  }
  return undefined
}

function refuseWithoutTimestamp(): Refused {
  return refuse(invalid('record timestamp was required but was missing', 'timestamp'))
}

function refuse(error: HeadwaterError): Refused {
  return { kind: 'refused', error }
}

/**
 * The timestamp of a record (docs/protocol.md "Timestamps"), or undefined if the mode requires one and the
 * writer gave none. Never less than `previous`, the timestamp of the preceding record. Times are in
 * milliseconds.
 */
export function assignTimestamp(
  given: number | undefined,
  previous: number,
  timestamping: StreamConfig['timestamping'],
  now: number,
): number | undefined {
  const chosen = timestamping.mode === 'arrival' ? now : given
  if (chosen === undefined && timestamping.mode === 'client-require') return undefined
  const wanted = chosen ?? now
  const capped = timestamping.uncapped ? wanted : Math.min(wanted, now)
  return Math.max(capped, previous)
}
