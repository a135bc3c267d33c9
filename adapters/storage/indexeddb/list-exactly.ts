import { dueTrim, type LogRow } from './log-row.ts'
import { type LogWrite, relist, settled } from './log-write.ts'
import { blocksOf, earliestExpiry, pageOf } from './page.ts'

/** Lists exactly what the row needs. Throws `RangeError` when its tail is damaged. */
export function listExactly(logId: string, before: LogRow, next: LogRow): LogWrite {
  const { tail, pages } = settled(logId, blocksOf(next.tail))
  const times = { expiryChoreAt: earliestExpiry(tail), trimChoreAt: dueTrim(next) }
  return { ...relist(logId, before, { ...next, tail: pageOf(tail) }, times), pages }
}
