import { trimRecord } from '../../src/model/command.ts'
import { trimPoint } from '../../src/sync/outbox-plan.ts'
import type { OutboxLog } from './outbox-log.ts'

/** The log is trimmed when this many of its records are not needed any more. */
const TRIMMED_RECORDS = 64

/** The sequence numbers up to which this tab has removed records of logs. */
const trimmedTo = new WeakMap<OutboxLog, number>()

/** Removes records of a log that are not needed any more, if there are enough of them. */
export async function trimLog(log: OutboxLog): Promise<void> {
  const to = trimPoint(log.state)
  if (to - (trimmedTo.get(log) ?? 0) < TRIMMED_RECORDS) return
  trimmedTo.set(log, to)
  await log.append([trimRecord(to)])
}
