import type { PageKey } from './schema.ts'

/** Of pages or parts that end after one sequence number and not after another. */
export function endingWithin(logId: string, after: number, until?: number): IDBKeyRange {
  // Part 0, too, comes behind the sequence number alone, and everything of the log before an array.
  return IDBKeyRange.bound([logId, after + 1], until === undefined ? [logId, []] : [logId, until, []])
}

/** Of the parts of one page. */
export function partsOfPage([logId, endSeqNum]: PageKey, first = 0): IDBKeyRange {
  return IDBKeyRange.bound([logId, endSeqNum, first], [logId, endSeqNum, []])
}
