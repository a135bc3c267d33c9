import type { AppendBatch } from '../model/append-input.ts'
import type { Cipher, StreamConfig } from '../model/config.ts'
import { HeadwaterError, invalid } from '../model/errors.ts'
import { INTEGER_MAX } from '../model/limits.ts'
import type { StreamPosition } from '../model/position.ts'
import type { SequencedRecord } from '../model/record.ts'
import { applyCommand } from './command.ts'
import type { StreamState } from './stream-state.ts'
import { assignTimestamp } from './timestamping.ts'

export interface Sequenced {
  readonly kind: 'sequenced'
  readonly records: readonly SequencedRecord[]
  readonly next: StreamState
  readonly start: StreamPosition
  readonly end: StreamPosition
}

export interface Refused {
  readonly kind: 'refused'
  readonly error: HeadwaterError
}

/** Random nonces of AES-256-GCM are safe for this many records under one key (wire-behaviour.md 10.5). */
const AES_GCM_SEQ_NUM_MAX = 0xff_ff_ff_ff

/**
 * Gives a batch its sequence numbers and timestamps, or refuses it whole. In this order (wire-behaviour.md 3.6): fencing token, sequence
 * number, then record by record. Commands in the batch take effect after the checks, in order.
 */
export function sequence(
  state: StreamState,
  batch: AppendBatch,
  config: Pick<StreamConfig, 'timestamping'> & { readonly cipher: Cipher | null },
  now: number,
): Sequenced | Refused {
  const refusal = checkConditions(state, batch)
  if (refusal !== undefined) return { kind: 'refused', error: refusal }

  const records: SequencedRecord[] = []
  let next = state
  let seqNum = state.tail.seqNum
  let timestamp = state.tail.timestamp
  for (const record of batch.records) {
    const seqNumMax =
      config.cipher === 'aes-256-gcm' && !record.command ? AES_GCM_SEQ_NUM_MAX : INTEGER_MAX - 1
    if (seqNum > seqNumMax) {
      return refuse(invalid(`max assignable sequence number is ${seqNumMax}; attempted ${seqNum}`, 'records'))
    }
    const assigned = assignTimestamp(record.timestamp, timestamp, config.timestamping, now)
    if (assigned === undefined) {
      return refuse(invalid('record timestamp was required but was missing', 'timestamp'))
    }
    timestamp = assigned
    records.push({ seqNum, timestamp, headers: record.headers, body: record.body })
    if (record.command) next = applyCommand(next, record.command, seqNum)
    seqNum++
  }
  const end = { seqNum, timestamp }
  return {
    kind: 'sequenced',
    records,
    next: { tail: end, trimPoint: next.trimPoint, fencingToken: next.fencingToken },
    start: { seqNum: state.tail.seqNum, timestamp: records[0]!.timestamp },
    end,
  }
}

function checkConditions(state: StreamState, batch: AppendBatch): HeadwaterError | undefined {
  const { fencingToken, matchSeqNum } = batch
  if (fencingToken !== undefined && fencingToken !== state.fencingToken) {
    return new HeadwaterError('fencing_token_mismatch', 'the stream has another fencing token', {
      field: 'fencing_token',
      fencingToken: state.fencingToken,
    })
  }
  if (matchSeqNum !== undefined && matchSeqNum !== state.tail.seqNum) {
    return new HeadwaterError(
      'seq_num_mismatch',
      `the next record gets sequence number ${state.tail.seqNum}, not ${matchSeqNum}`,
      { field: 'match_seq_num', seqNum: state.tail.seqNum },
    )
  }
  return undefined
}

function refuse(error: HeadwaterError): Refused {
  return { kind: 'refused', error }
}
