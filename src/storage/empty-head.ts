import type { Head, LogStart } from './contract.ts'

const BEGINNING: LogStart = { tail: { seqNum: 0, timestamp: 0 }, fencingToken: '' }

/** The head of a log that was just created. */
export function emptyHead(epoch: number, createdAt: number, start: LogStart = BEGINNING): Head {
  const { tail, fencingToken } = start
  return {
    epoch,
    tail: { seqNum: tail.seqNum, timestamp: tail.timestamp },
    trimPoint: tail.seqNum,
    fencingToken,
    appendId: '',
    appendedAt: createdAt,
    trims: [],
  }
}
