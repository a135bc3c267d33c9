import { type AppendPlan, planAppends } from '../../../src/storage/append-plan.ts'
import type { AppendRequest, StoredBlock } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { PendingItem } from '../../../src/storage/group-commit.ts'
import { hasNewTrim } from '../../../src/storage/heads.ts'
import { blockKey, dataKey, encodeBlock, firstBlockOf, isInline } from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, type LogEntries, transact } from './transaction.ts'

type Append = PendingItem<AppendRequest>

/** Writes a group of appends in one batch, and settles them. Each log is a compare-and-set of its own. */
export async function appendGroup(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  group: readonly Append[],
): Promise<void> {
  let refusals = new Map<Append, unknown>()
  try {
    await transact(store, logs, async () => {
      const draft = new Draft(group.length === 1 && hasNewTrim(group[0]!.item.head))
      refusals = new Map()
      for (const [logId, appends] of byLog(group)) {
        try {
          const requests = appends.map(({ item }) => item)
          const conflicts = await draftAppends(draft, logs, logId, requests)
          for (const append of appends) {
            const conflict = conflicts.get(append.item)
            if (conflict !== undefined) refusals.set(append, conflict)
          }
        } catch (error) {
          // A log that is damaged or cannot be read does not stop the others.
          for (const append of appends) refusals.set(append, error)
        }
      }
      return draft
    })
  } catch (error) {
    // On its own, a small append or a trim may find space.
    if (isFull(error) && group.length > 1) {
      for (const append of group) await appendGroup(store, logs, [append])
      return
    }
    // A refusal may rest on appends of the group that failed.
    for (const { reject } of group) reject(error)
    return
  }
  for (const append of group) {
    if (refusals.has(append)) append.reject(refusals.get(append))
    else append.resolve()
  }
}

function isFull(error: unknown): boolean {
  return StorageFailure.is(error) && error.kind === 'quota' && error.nothingWritten
}

function byLog(group: readonly Append[]): Map<string, Append[]> {
  const logs = new Map<string, Append[]>()
  for (const append of group) {
    const own = logs.get(append.item.logId)
    if (own === undefined) logs.set(append.item.logId, [append])
    else own.push(append)
  }
  return logs
}

/**
 * Adds the appends to a log whose expectation holds. Rejects if the log is damaged or cannot be read.
 *
 * @returns The conflicts of the others.
 */
async function draftAppends(
  draft: Draft,
  logs: LogEntries,
  logId: string,
  requests: readonly AppendRequest[],
): Promise<AppendPlan['conflicts']> {
  let entry = logs.cached(logId) ?? (await logs.load(logId))
  let plan = planAppends(requests, { headOf: () => entry.log?.head })
  // A cached entry of a shared store may be stale, so it is not a reason to refuse an append.
  if (plan.conflicts.size > 0 && !logs.isExclusive) {
    entry = await logs.load(logId)
    plan = planAppends(requests, { headOf: () => entry.log?.head })
  }
  for (const { blocks, head } of plan.logs) {
    let { meteredBytes, unmerged, first, ...log } = entry.log!
    for (const block of blocks) {
      addBlock(draft, logId, block)
      first ??= firstBlockOf(block)
      meteredBytes += block.meteredBytes
      unmerged++
    }
    draft.putLog(logId, entry, { ...log, head, meteredBytes, first, unmerged })
  }
  return plan.conflicts
}

/** Adds a block to a batch. */
export function addBlock({ puts }: Draft, logId: string, block: StoredBlock): void {
  const { endSeqNum, data } = block
  puts.push([blockKey(logId, endSeqNum), encodeBlock(block)])
  // A copy: the store may keep it, and the data may be a view of a larger buffer.
  if (!isInline(data)) puts.push([dataKey(logId, endSeqNum), new Uint8Array(data)])
}
