import { utf8 } from '../../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../../src/model/record.ts'

/** What a writer appends: nothing that has to be remembered to check it. */
export function recordOf(logId: string, seqNum: number): SequencedRecord {
  const body = utf8(`${logId}#${seqNum}#${'x'.repeat((seqNum * 37) % 300)}`)
  return { seqNum, timestamp: 1_700_000_000_000 + seqNum, headers: [], body }
}

export const LOG_IDS = Array.from({ length: 8 }, (_, i) => `log-${i}`)

/** Small, so that rolling and merging are under way when the process is killed. */
export const ROLL_BYTES = 50_000
