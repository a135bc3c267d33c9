import type { Head, LogStart } from '../../../src/storage/contract.ts'
import { emptyHead } from '../../../src/storage/heads.ts'
import { numberOf, type PostgresRow } from './client.ts'
import { unwrittenFailure } from './failures.ts'

/** The part of a head that has no separate column. */
type State = Pick<Head, 'trimPoint' | 'fencingToken' | 'appendedAt' | 'trims'> & {
  readonly timestamp: number
}

/** The column `state`. */
export function stateOf({ tail, trimPoint, fencingToken, appendedAt, trims }: Head): string {
  const state: State = { timestamp: tail.timestamp, trimPoint, fencingToken, appendedAt, trims }
  return JSON.stringify(state)
}

/** The column `write_state`. */
export function writeStateOf({ writeState }: Head): string | null {
  return writeState === undefined ? null : JSON.stringify(writeState)
}

/** The columns of a head. */
export const HEAD_COLUMNS = 'epoch, seq_num, append_id, state, extensions, write_state'

/** The head in {@link HEAD_COLUMNS}. */
export function headOf({ epoch, seq_num, append_id, state, extensions, write_state }: PostgresRow): Head {
  let rest: State
  let extended: Pick<Head, 'extensions'> = {}
  let written: Pick<Head, 'writeState'> = {}
  try {
    rest = JSON.parse(String(state))
    if (extensions !== null) extended = { extensions: JSON.parse(String(extensions)) }
    if (write_state !== null) written = { writeState: JSON.parse(String(write_state)) }
  } catch (error) {
    throw unwrittenFailure('corrupt', 'the head of a log is damaged', error)
  }
  return {
    epoch: numberOf(epoch),
    tail: { seqNum: numberOf(seq_num), timestamp: rest.timestamp },
    trimPoint: rest.trimPoint,
    fencingToken: rest.fencingToken,
    appendId: String(append_id),
    appendedAt: rest.appendedAt,
    trims: rest.trims,
    ...extended,
    ...written,
  }
}

/** The row of a new log, as JSON. */
export function newLogRow(epoch: number, createdAt: number, start?: LogStart) {
  const head = emptyHead(epoch, createdAt, start)
  return { epoch, seq_num: head.tail.seqNum, state: stateOf(head) }
}
