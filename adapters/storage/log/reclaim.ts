import { extendedExpiry, isExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { Medium } from '../media/medium.ts'
import type { Change } from './changes.ts'
import type { Committer } from './committer.ts'
import { readChunks, readIndex } from './segment.ts'
import type { Log, Run, State } from './state.ts'

/** How many logs one commit frees blocks of, so that appends do not wait long. */
const LOGS_PER_COMMIT = 256
const CHANGE_BYTES = 64

/** The blocks at the beginning of a log that can be freed. */
interface Freeable {
  readonly id: string
  /** The log as it was examined. */
  readonly log: Log
  readonly below: number
  readonly blocks: number
  readonly meteredBytes: number
  /** When the log has to be examined again, in milliseconds; null for never. */
  readonly nextAt: number | null
}

/** Frees the beginnings of logs: a block that expires before an older one waits for it. */
export async function reclaim(
  medium: Medium,
  state: State,
  committer: Committer,
  limits: ReclaimLimits,
): Promise<Reclaimed> {
  const logIds: string[] = []
  const again: (readonly [id: string, at: number | null])[] = []
  let left = limits.blocksMax
  let failure: unknown
  let found: Freeable[] = []
  const commit = async () => {
    const changed = found
    found = []
    try {
      if (changed.length > 0) logIds.push(...(await free(committer, changed)))
    } catch (error) {
      for (const { id } of changed) state.due.schedule(id, 0)
      throw error
    }
  }
  try {
    const until = Math.max(limits.now, limits.trimmedBefore)
    while (left > 0) {
      const id = state.due.take(until)
      if (id === undefined) break
      const log = state.logs.get(id)
      if (log === undefined) continue
      try {
        const freeable = await examine(medium, id, log, limits, left)
        again.push([id, freeable.nextAt])
        left -= freeable.blocks
        if (freeable.blocks > 0) found.push(freeable)
      } catch (error) {
        // It stays until the storage is opened again, and does not stop the others.
        failure ??= error
      }
      if (found.length >= LOGS_PER_COMMIT) await commit()
    }
    await commit()
  } finally {
    for (const [id, at] of again) state.due.schedule(id, at)
  }
  if (failure !== undefined && logIds.length === 0) throw failure
  return { more: left <= 0, logIds }
}

/** Resolves to the logs of which something was freed. */
async function free(committer: Committer, found: readonly Freeable[]): Promise<string[]> {
  const freed: string[] = []
  await committer.commit('frees', found.length * CHANGE_BYTES, (stage) => {
    freed.length = 0
    const changes: Change[] = []
    for (const { id, log, below, meteredBytes } of found) {
      // With another epoch the retention may have been extended.
      if (stage.headOf(id)?.epoch !== log.head.epoch) continue
      changes.push({ kind: 'free', log: id, below, meteredBytes })
      freed.push(id)
    }
    return { frames: changes.map((change) => ({ changes: [change] })) }
  })
  return freed
}

async function examine(
  medium: Medium,
  id: string,
  log: Log,
  { now, trimmedBefore }: ReclaimLimits,
  blocksMax: number,
): Promise<Freeable> {
  const { head, freedBelow, runs, blocks } = log
  const point = reclaimablePoint(head.trims, trimmedBefore)
  const laterTrim = head.trims.find(({ at }) => at > trimmedBefore)?.at
  const count = new Count(blocksMax, freedBelow)
  const isFreeable = (block: BlockSummary): boolean =>
    block.endSeqNum <= point || isExpired(extendedExpiry(block, head.extensions), now)
  const take = (all: readonly BlockSummary[]): boolean => {
    for (const block of all) if (block.endSeqNum > freedBelow && !count.take(block, isFreeable)) return false
    return true
  }
  const takeRuns = async (): Promise<boolean> => {
    for (const run of runs) {
      if (count.takeRun(run, isWhollyFreeable(run, log, point, now))) continue
      const chunks = await readIndex(medium, id, run)
      for (const chunk of chunks) {
        if (chunk.endSeqNum <= freedBelow) continue
        if (!take(await readChunks(medium, id, run.segment, [chunk]))) return false
      }
    }
    return true
  }
  if (await takeRuns()) take(blocks.slice())
  const expiry = count.stoppedAt && (count.isFull ? 0 : extendedExpiry(count.stoppedAt, head.extensions))
  const times = [expiry, laterTrim].filter((time) => time !== undefined && time !== null)
  const { below, taken, meteredBytes } = count
  return {
    id,
    log,
    below,
    blocks: taken,
    meteredBytes,
    nextAt: times.length === 0 ? null : Math.min(...times),
  }
}

/** Whether all blocks of a run can be freed, without looking at them. */
function isWhollyFreeable(run: Run, { head, freedBelow }: Log, point: number, now: number): boolean {
  if (freedBelow > run.firstSeqNum) return false
  return run.endSeqNum <= point || (!head.extensions?.length && isExpired(run.lastExpiry, now))
}

/** Counts blocks from the beginning of a log up to the first one that cannot be freed. */
class Count {
  readonly #max: number
  below: number
  taken = 0
  meteredBytes = 0
  stoppedAt: BlockSummary | undefined

  constructor(max: number, freedBelow: number) {
    this.#max = max
    this.below = freedBelow
  }

  /** Whether it stopped because there were enough. */
  get isFull(): boolean {
    return this.taken >= this.#max
  }

  /** Returns whether the block was taken, so that the next one can follow. */
  take(block: BlockSummary, isFreeable: (block: BlockSummary) => boolean): boolean {
    if (this.isFull || !isFreeable(block)) {
      this.stoppedAt = block
      return false
    }
    this.#add(block.endSeqNum, 1, block.meteredBytes)
    return true
  }

  takeRun(run: Run, isWhollyFreeable: boolean): boolean {
    if (!isWhollyFreeable || this.taken + run.blocks > this.#max) return false
    this.#add(run.endSeqNum, run.blocks, run.meteredBytes)
    return true
  }

  #add(endSeqNum: number, blocks: number, meteredBytes: number): void {
    this.below = endSeqNum
    this.taken += blocks
    this.meteredBytes += meteredBytes
  }
}
