import { mergeableBlocks, mergedBlock } from './block-sizes.ts'
import type { LogHeads } from './commit-plan.ts'
import type { AppendRequest, Head, StoredBlock } from './contract.ts'
import type { StorageConflict } from './errors.ts'
import { appendConflict } from './heads.ts'

/** The outcome of a group of appends for one log. */
export interface LogAppends {
  /** Id of the log. */
  readonly logId: string
  /** The blocks to add, in order. Blocks of several appends may be merged. */
  readonly blocks: readonly StoredBlock[]
  /** The head after the last append. */
  readonly head: Head
}

/** The writes that a group of appends consists of. A storage makes all of them or none. */
export interface AppendPlan {
  /** The logs that change, each once. */
  readonly logs: readonly LogAppends[]
  /** Why the other appends are rejected. */
  readonly conflicts: ReadonlyMap<AppendRequest, StorageConflict>
}

/**
 * Decides about a group of appends, in order: each is accepted if its log has the expected head after those
 * before it. Changes nothing itself.
 */
export function planAppends(requests: readonly AppendRequest[], heads: Pick<LogHeads, 'headOf'>): AppendPlan {
  const logs: LogAppends[] = []
  const conflicts = new Map<AppendRequest, StorageConflict>()
  for (const [logId, own] of byLog(requests)) {
    let head = heads.headOf(logId)
    const accepted: AppendRequest[] = []
    for (const request of own) {
      const conflict = appendConflict(logId, head, request.expected)
      if (conflict === undefined) {
        accepted.push(request)
        head = request.head
      } else conflicts.set(request, conflict)
    }
    if (head === undefined || accepted.length === 0) continue
    const added = accepted.flatMap(({ blocks }) => blocks)
    const blocks = mergeableBlocks(added).map((group) => mergedBlock(group))
    logs.push({ logId, blocks, head })
  }
  return { logs, conflicts }
}

function byLog(requests: readonly AppendRequest[]): Map<string, AppendRequest[]> {
  const logs = new Map<string, AppendRequest[]>()
  for (const request of requests) {
    const own = logs.get(request.logId)
    if (own === undefined) logs.set(request.logId, [request])
    else own.push(request)
  }
  return logs
}
