import { utf8 } from '../../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../../src/model/record.ts'

/** What a writer appends: nothing that has to be remembered to check it. */
export function recordOf(logId: string, seqNum: number): SequencedRecord {
  const bytes = seqNum % 16 === 5 ? 2 * LARGE_BLOCK_BYTES : (seqNum * 37) % 300
  const body = utf8(`${logId}#${seqNum}#${'x'.repeat(bytes)}`)
  return { seqNum, timestamp: 1_700_000_000_000 + seqNum, headers: [], body }
}

export const LOG_IDS = Array.from({ length: 8 }, (_, i) => `log-${i}`)

/** Small, so that rolling and merging are under way when the process is killed. */
export const ROLL_BYTES = 50_000
/** From this length on blocks are not copied, in bytes. */
export const LARGE_BLOCK_BYTES = 3_000
