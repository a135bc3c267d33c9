import type { Stream } from '../../../src/api/stream.ts'
import type { StreamPosition } from '../../../src/model/position.ts'
import { plural } from '../format.ts'

/** The extent of a stream: the first remaining record, if there is one, and the tail. */
export interface Extent {
  readonly first: number | undefined
  readonly tail: StreamPosition
}

export async function extentOf(stream: Stream, signal: AbortSignal): Promise<Extent> {
  const tail = await stream.checkTail({ signal })
  const { records } = await stream.readBatch({ seqNum: 0, count: 1 }, { as: 'bytes', signal })
  return { first: records[0]?.seqNum, tail }
}

/** Leaves out the records below `trimPoint`, which reads still return for a few seconds. */
export function withoutTrimmed({ first, tail }: Extent, trimPoint: number): Extent {
  const remaining = first === undefined ? tail.seqNum : Math.max(first, trimPoint)
  return { first: remaining < tail.seqNum ? remaining : undefined, tail }
}

/** Returns the effect of a trim in words. */
export function trimEffect({ first, tail }: Extent, seqNum: number): string {
  if (first === undefined) return 'The stream holds no records: nothing is removed.'
  if (seqNum <= first) return `Nothing is removed: the first record is ${first}.`
  if (seqNum > tail.seqNum) {
    return `Removes all ${plural(tail.seqNum - first, 'record')}, and the trim command itself. The tail becomes ${tail.seqNum + 1}.`
  }
  const removed = `Removes ${plural(seqNum - first, 'record')}: ${first} to ${seqNum - 1}.`
  const remaining = tail.seqNum - seqNum
  if (remaining === 0) return `${removed} Only the trim command remains.`
  return `${removed} ${plural(remaining, 'record')} and the trim command remain; ${seqNum} is the first.`
}

/** Returns the effect of a fence in words. */
export function fenceEffect(token: string): string {
  if (token === '') return 'The stream will have no fencing token: appends that name one are rejected.'
  return `Appends that name another token than ${JSON.stringify(token)} will be rejected with 412. Appends that name none are still accepted.`
}
