import { emptyHead, type Head, type LogStart } from '../../../src/storage/contract.ts'
import type { Row } from './client.ts'
import { failure } from './failures.ts'
import { numberOf } from './values.ts'

/** The part of a head that has no separate column. */
type State = Pick<Head, 'trimPoint' | 'fencingToken' | 'appendedAt' | 'trims'> & {
  readonly timestamp: number
}

/** The column `state`. */
export function stateOf({ tail, trimPoint, fencingToken, appendedAt, trims }: Head): string {
  const state: State = { timestamp: tail.timestamp, trimPoint, fencingToken, appendedAt, trims }
  return JSON.stringify(state)
}

/** The head in the columns `epoch`, `seq_num`, `append_id` and `state`. */
export function headOf({ epoch, seq_num, append_id, state }: Row): Head {
  let rest: State
  try {
    rest = JSON.parse(String(state))
  } catch (error) {
    throw failure('corrupt', 'the head of a log is damaged', error)
  }
  return {
    epoch: numberOf(epoch),
    tail: { seqNum: numberOf(seq_num), timestamp: rest.timestamp },
    trimPoint: rest.trimPoint,
    fencingToken: rest.fencingToken,
    appendId: String(append_id),
    appendedAt: rest.appendedAt,
    trims: rest.trims,
  }
}

/** The row of a new log, as JSON. */
export function newLogRow(epoch: number, createdAt: number, start?: LogStart) {
  const head = emptyHead(epoch, createdAt, start)
  return { epoch, seq_num: head.tail.seqNum, state: stateOf(head) }
}
