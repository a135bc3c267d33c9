import type { LogRow } from './log-row.ts'
import { dueTrim, type LogWrite, relist } from './log-write.ts'
import { blocksOf, earliestExpiry } from './page.ts'

/** Lists exactly what the row needs. */
export function listExactly(logId: string, before: LogRow, next: LogRow): LogWrite {
  const times = { expiryChoreAt: earliestExpiry(blocksOf(next.tail)), trimChoreAt: dueTrim(next) }
  return { ...relist(logId, before, next, times), pages: [] }
}
