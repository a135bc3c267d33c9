import { isBlockExpired, isReclaimable, reclaimablePoint, reclaimTimes } from '../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { ReadableMedium } from '../media/medium.ts'
import type { FirstBlock, FreeChange } from './changes.ts'
import type { Committer } from './committer.ts'
import { blocksOf } from './segment.ts'
import { firstOf, type Log, type Run, type State } from './state.ts'

const CHANGE_BYTES = 64

/** What can be freed of a log. */
interface Freeable {
  readonly change: FreeChange
  readonly blocks: number
  /** With another epoch, the retention may have been extended since. */
  readonly epoch: number
}

/** Frees the beginnings of logs: a block that expires before an older one waits for it. */
export async function reclaim(
  medium: ReadableMedium,
  state: State,
  committer: Committer,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  let left = limits.blocksMax
  let failure: unknown
  const found: Freeable[] = []
  for (const [id, log] of state.dueLogs(Math.max(limits.now, limits.trimmedBefore))) {
    if (left <= 0) break
    try {
      const freeable = await freeableOf(medium, id, log, limits, left)
      if (freeable === undefined) continue
      found.push(freeable)
      left -= freeable.blocks
    } catch (error) {
      // It does not stop the others.
      failure ??= error
    }
  }
  const logIds = found.length === 0 ? [] : await free(committer, found)
  if (failure !== undefined && logIds.length === 0) throw failure
  return { more: left <= 0, logIds }
}

/** Resolves to the logs of which something was freed. */
async function free(committer: Committer, found: readonly Freeable[]): Promise<string[]> {
  let freed: FreeChange[] = []
  await committer.commit('frees', found.length * CHANGE_BYTES, (stage) => {
    freed = found
      .filter(({ change, epoch }) => stage.headOf(change.log)?.epoch === epoch)
      .map(({ change }) => change)
    return freed.map((change) => ({ changes: [change] }))
  })
  return freed.map(({ log }) => log)
}

/** Resolves to the blocks at the beginning of a log that can be freed, at most so many; undefined without. */
async function freeableOf(
  medium: ReadableMedium,
  id: string,
  log: Log,
  limits: ReclaimLimits,
  blocksMax: number,
): Promise<Freeable | undefined> {
  const { trims, extensions, epoch } = log.head
  let [below, blocks, meteredBytes] = [0, 0, 0]
  let next: FirstBlock | null = null
  const isFreeable = (block: FirstBlock) => isReclaimable(reclaimTimes(block, log.head), limits)
  /** Whether a run can be freed without a look at its blocks. */
  const isWhole = ({ endSeqNum, lastExpiry }: Run) =>
    endSeqNum <= reclaimablePoint(trims, limits.trimmedBefore) ||
    (!extensions?.length && isBlockExpired(lastExpiry, limits.now))
  const take = (part: { readonly endSeqNum: number; readonly meteredBytes: number }, count: number) => {
    below = part.endSeqNum
    blocks += count
    meteredBytes += part.meteredBytes
  }
  const takeAll = async () => {
    // Appends add to the array meanwhile.
    const last = log.blocks.slice()
    for (const run of log.runs) {
      if (isWhole(run) && blocks + run.blocks <= blocksMax) {
        take(run, run.blocks)
        continue
      }
      const before = blocks
      for await (const block of blocksOf(medium, id, run, log.freedBelow)) {
        if (blocks >= blocksMax || !isFreeable(block)) {
          const { firstSeqNum, endSeqNum, expiresAt } = block
          if (blocks > before) next = { firstSeqNum, endSeqNum, expiresAt }
          return
        }
        take(block, 1)
      }
    }
    for (const block of last) {
      if (blocks >= blocksMax || !isFreeable(block)) return
      take(block, 1)
    }
  }
  const first = firstOf(log)
  if (first !== undefined && isFreeable(first)) await takeAll()
  if (blocks === 0) return undefined
  return { change: { kind: 'free', log: id, below, meteredBytes, next }, blocks, epoch }
}
