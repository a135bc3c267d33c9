import type { Head } from '../../../../src/storage/contract.ts'
import type { Change } from '../changes.ts'
import type { Log } from '../log.ts'

const TRIMS_MAX = 3

/** What a head says of itself. Throws `RangeError` when it cannot be. */
export function checkHead({ tail, trimPoint, trims }: Head): void {
  if (trimPoint > tail.seqNum) {
    throw new RangeError(`the trim point ${trimPoint} is behind the tail ${tail.seqNum}`)
  }
  if (trims.length > TRIMS_MAX) throw new RangeError(`${trims.length} trims are noted`)
  let before = 0
  for (const { point } of trims) {
    if (point < before || point > trimPoint) {
      throw new RangeError(
        `a trim to ${point} is noted behind one to ${before}, with the trim point ${trimPoint}`,
      )
    }
    before = point
  }
}

/** An append goes on where the head of its log is, and leaves the head behind its block. Throws `RangeError` when it does not. */
export function checkAppend({ head: before }: Log, change: Extract<Change, { kind: 'append' }>): void {
  const { block, head } = change
  if (block.firstSeqNum !== before.tail.seqNum) {
    throw new RangeError(`a block begins at ${block.firstSeqNum}, and the tail is at ${before.tail.seqNum}`)
  }
  if (block.firstTimestamp < before.tail.timestamp) {
    throw new RangeError(`a block begins at time ${block.firstTimestamp}, before ${before.tail.timestamp}`)
  }
  const { seqNum, timestamp } = head.tail
  if (seqNum !== block.endSeqNum || timestamp !== block.lastTimestamp) {
    throw new RangeError(
      `a head has the tail ${seqNum} at ${timestamp}, and its block ends with ${block.endSeqNum} at ${block.lastTimestamp}`,
    )
  }
  if (head.epoch !== before.epoch) {
    throw new RangeError(`an append of epoch ${head.epoch} in a log of epoch ${before.epoch}`)
  }
  if (head.trimPoint < before.trimPoint) {
    throw new RangeError(`the trim point ${before.trimPoint} goes back to ${head.trimPoint}`)
  }
  checkHead(head)
}
