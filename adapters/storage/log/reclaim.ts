import { blockExpiresAt, isBlockExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { ReadableMedium } from '../media/medium.ts'
import type { FirstBlock, FreeChange } from './changes.ts'
import type { Committer } from './committer.ts'
import { blocksOf } from './segment.ts'
import { firstOf, type Log, type Run, type State } from './state.ts'

/** How many logs one commit frees blocks of, so that appends do not wait long. */
const LOGS_PER_COMMIT = 256
const CHANGE_BYTES = 64

/** What can be freed of a log. */
interface Freeable {
  readonly change: FreeChange
  /** With another epoch, the retention may have been extended since. */
  readonly epoch: number
}

/**
 * Frees the beginnings of logs: a block that expires before an older one waits for it.
 *
 * @param damaged Logs that cannot be read, and are skipped until the storage is opened again.
 */
export async function reclaim(
  medium: ReadableMedium,
  state: State,
  committer: Committer,
  limits: ReclaimLimits,
  damaged: Set<string>,
): Promise<Reclaimed> {
  const logIds: string[] = []
  let left = limits.blocksMax
  let failure: unknown
  const found: Freeable[] = []
  for (const [id, log] of state.dueLogs(Math.max(limits.now, limits.trimmedBefore))) {
    if (left <= 0) break
    if (damaged.has(id)) continue
    try {
      const prefix = new Prefix(log, limits, left)
      const change = await prefix.changeOf(id, medium)
      left -= prefix.blocks
      if (change !== undefined) found.push({ change, epoch: log.head.epoch })
    } catch (error) {
      // It does not stop the others.
      damaged.add(id)
      failure ??= error
    }
    if (found.length >= LOGS_PER_COMMIT) logIds.push(...(await free(committer, found.splice(0))))
  }
  if (found.length > 0) logIds.push(...(await free(committer, found)))
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

/** The blocks at the beginning of a log that can be freed: at most so many. */
class Prefix {
  readonly #log: Log
  readonly #limits: ReclaimLimits
  readonly #blocksMax: number
  readonly #point: number
  /** How many there are. */
  blocks = 0
  #meteredBytes = 0
  #below = 0
  /** The block behind them, if it is in the same run. */
  #next: FirstBlock | null = null

  constructor(log: Log, limits: ReclaimLimits, blocksMax: number) {
    this.#log = log
    this.#limits = limits
    this.#blocksMax = blocksMax
    this.#point = reclaimablePoint(log.head.trims, limits.trimmedBefore)
  }

  /** Resolves to the change that frees them; undefined if there are none. */
  async changeOf(id: string, medium: ReadableMedium): Promise<FreeChange | undefined> {
    const first = firstOf(this.#log)
    if (first === undefined || !this.#isFreeable(first)) return undefined
    await this.#takeAll(id, medium)
    if (this.blocks === 0) return undefined
    const [below, meteredBytes, next] = [this.#below, this.#meteredBytes, this.#next]
    return { kind: 'free', log: id, below, meteredBytes, next }
  }

  async #takeAll(id: string, medium: ReadableMedium): Promise<void> {
    const { runs, freedBelow } = this.#log
    // Appends add to the array meanwhile.
    const blocks = this.#log.blocks.slice()
    for (const run of runs) {
      if (this.#takeRun(run)) continue
      let isBegun = false
      for await (const { firstSeqNum, endSeqNum, meteredBytes, expiresAt } of blocksOf(
        medium,
        id,
        run,
        freedBelow,
      )) {
        const block = { firstSeqNum, endSeqNum, expiresAt }
        if (!this.#take(block, meteredBytes)) {
          if (isBegun) this.#next = block
          return
        }
        isBegun = true
      }
    }
    for (const block of blocks) if (!this.#take(block, block.meteredBytes)) return
  }

  #isFreeable(block: FirstBlock): boolean {
    const { extensions } = this.#log.head
    return (
      block.endSeqNum <= this.#point || isBlockExpired(blockExpiresAt(block, extensions), this.#limits.now)
    )
  }

  /** Takes a run as a whole, without a look at its blocks, if all of them can be freed. */
  #takeRun({ endSeqNum, blocks, meteredBytes, lastExpiry }: Run): boolean {
    const { extensions } = this.#log.head
    const isExpiredRun = !extensions?.length && isBlockExpired(lastExpiry, this.#limits.now)
    const isWhole = endSeqNum <= this.#point || isExpiredRun
    if (!isWhole || this.blocks + blocks > this.#blocksMax) return false
    this.#add(endSeqNum, blocks, meteredBytes)
    return true
  }

  /** Returns whether the next block may follow. */
  #take(block: FirstBlock, meteredBytes: number): boolean {
    if (this.blocks >= this.#blocksMax || !this.#isFreeable(block)) return false
    this.#add(block.endSeqNum, 1, meteredBytes)
    return true
  }

  #add(endSeqNum: number, blocks: number, meteredBytes: number): void {
    this.#below = endSeqNum
    this.blocks += blocks
    this.#meteredBytes += meteredBytes
  }
}
