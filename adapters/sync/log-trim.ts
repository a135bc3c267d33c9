import { trimRecord } from '../../src/model/command.ts'
import { trimPoint } from '../../src/sync/outbox-trim.ts'
import type { OutboxLog } from './outbox-log.ts'

/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** Removes records of a log that are not needed any more, if there are enough of them. */
export async function trimLog(log: OutboxLog): Promise<void> {
  const to = trimPoint(log.state)
  if (to - log.trimmedTo < TRIMMED_RECORDS) return
  log.trimmedTo = to
  await log.append([trimRecord(to)])
}
