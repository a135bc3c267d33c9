import { fenceRecord, type RecordInput, trimRecord } from '../../../../src/index.ts'

export const BASIN = 'killed'
export const STREAMS = Array.from({ length: 4 }, (_, i) => `stream-${i}`)

const FENCE_EVERY = 53
const TRIM_EVERY = 97
const KEPT = 300

/** The records of a writer depend only on the stream and the position, including fences and trims. */
export function recordAt(stream: string, seqNum: number): RecordInput {
  if (seqNum % FENCE_EVERY === 0) return fenceRecord(tokenAt(seqNum))
  if (seqNum % TRIM_EVERY === 0) return trimRecord(Math.max(seqNum - KEPT, 0))
  return bodyAt(stream, seqNum)
}

export function isCommandAt(seqNum: number): boolean {
  return seqNum % FENCE_EVERY === 0 || seqNum % TRIM_EVERY === 0
}

/** Some are large. */
export function bodyAt(stream: string, seqNum: number): string {
  const length = seqNum % 16 === 5 ? 6_000 : (seqNum * 37) % 300
  return `${stream}#${seqNum}#${'x'.repeat(length)}`
}

/** The one that a stream has if it ends there. */
export function fencingTokenOf(tail: number): string {
  return tail === 0 ? '' : tokenAt(tail - 1 - ((tail - 1) % FENCE_EVERY))
}

/** The one that a stream has if it ends there. */
export function trimPointOf(tail: number): number {
  for (let seqNum = tail - 1; seqNum > 0; seqNum--) {
    const isTrim = seqNum % TRIM_EVERY === 0 && seqNum % FENCE_EVERY !== 0
    if (isTrim) return Math.max(seqNum - KEPT, 0)
  }
  return 0
}

function tokenAt(seqNum: number): string {
  return `token-${seqNum}`
}
