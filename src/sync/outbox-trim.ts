import type { OutboxState } from './outbox-log.ts'

/** Returns the sequence number up to which the log is not needed any more. */
export function trimPoint({ entries, parts, progressAt, attempt, overtaking }: OutboxState): number {
  const [first] = entries.keys()
  const needed = [first, parts[0]?.seqNum, progressAt, attempt?.at]
  const point = Math.min(...needed.map((seqNum) => seqNum ?? Number.POSITIVE_INFINITY))
  const isWithin = overtaking !== undefined && point > overtaking.from && point <= overtaking.at
  return isWithin ? overtaking.from : point
}
