import { mergeableAppends, mergedBlock } from '../block-sizes.ts'
import type { AppendRequest, StoredBlock } from '../contract.ts'
import type { PendingItem } from '../group-commit.ts'
import { appendConflict } from '../heads.ts'
import { blockKey, encodeBlock, encodeExpiry, expiryKey, INLINE_BYTES_MAX, partKey } from './layout.ts'
import type { OrderedKeyValueStore } from './store.ts'
import { Draft, type LogEntries, type LogEntry, transact } from './transaction.ts'

type Append = PendingItem<AppendRequest>

/** Writes a group of appends in one batch, and settles them. Each log is a compare-and-set of its own. */
export async function appendGroup(
  store: OrderedKeyValueStore,
  logs: LogEntries,
  valueBytesMax: number,
  group: readonly Append[],
): Promise<void> {
  let refusals = new Map<Append, unknown>()
  try {
    await transact(store, logs, async () => {
      const draft = new Draft()
      refusals = new Map()
      for (const [logId, appends] of byLog(group)) {
        try {
          const plan = await planAppends(logs, logId, appends)
          for (const [append, refusal] of plan.refusals) refusals.set(append, refusal)
          if (plan.accepted.length > 0) addAppends(draft, logId, plan, valueBytesMax)
        } catch (error) {
          // A log that is damaged or cannot be read does not stop the others.
          for (const append of appends) refusals.set(append, error)
        }
      }
      return draft
    })
  } catch (error) {
    // A refusal may rest on appends of the group that failed.
    for (const { reject } of group) reject(error)
    return
  }
  for (const append of group) {
    if (refusals.has(append)) append.reject(refusals.get(append))
    else append.resolve()
  }
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

interface PlannedAppends {
  readonly entry: LogEntry
  readonly accepted: readonly AppendRequest[]
  readonly refusals: ReadonlyMap<Append, unknown>
}

/** A cached entry of a shared store may be stale, so it is not a reason to refuse an append. */
async function planAppends(
  logs: LogEntries,
  logId: string,
  appends: readonly Append[],
): Promise<PlannedAppends> {
  const cached = logs.cached(logId)
  const plan = cached && checkHeads(cached, logId, appends)
  if (plan !== undefined && (plan.refusals.size === 0 || logs.isExclusive)) return plan
  return checkHeads(await logs.load(logId), logId, appends)
}

/** Accepts each append, in order, if the head is the expected one when its turn comes. */
function checkHeads(entry: LogEntry, logId: string, appends: readonly Append[]): PlannedAppends {
  const accepted: AppendRequest[] = []
  const refusals = new Map<Append, unknown>()
  let head = entry.log?.head
  for (const append of appends) {
    const conflict = appendConflict(logId, head, append.item.expected)
    if (conflict !== undefined) {
      refusals.set(append, conflict)
      continue
    }
    accepted.push(append.item)
    head = append.item.head
  }
  return { entry, accepted, refusals }
}

function addAppends(
  draft: Draft,
  logId: string,
  { entry, accepted }: PlannedAppends,
  valueBytesMax: number,
): void {
  const { meteredBytes, freedBelow } = entry.log!
  let added = 0
  for (const requests of mergeableAppends(accepted)) {
    const block = mergedBlock(requests.map(({ block }) => block))
    added += block.meteredBytes
    addBlock(draft, logId, block, valueBytesMax)
  }
  const { head } = accepted.at(-1)!
  draft.putLog(logId, entry, { head, meteredBytes: meteredBytes + added, freedBelow })
}

function addBlock({ puts }: Draft, logId: string, block: StoredBlock, valueBytesMax: number): void {
  const { endSeqNum, expiresAt, meteredBytes, data } = block
  const isInline = data.length <= INLINE_BYTES_MAX
  const parts = isInline ? 0 : Math.ceil(data.length / valueBytesMax)
  puts.push([blockKey(logId, endSeqNum), encodeBlock(block, parts)])
  for (let part = 0; part < parts; part++) {
    const start = part * valueBytesMax
    // A copy: the store may keep it, and the data may be a view of a larger buffer.
    puts.push([partKey(logId, endSeqNum, part), new Uint8Array(data.subarray(start, start + valueBytesMax))])
  }
  if (expiresAt === null) return
  puts.push([expiryKey({ expiresAt, logId, endSeqNum }), encodeExpiry({ meteredBytes, parts })])
}
