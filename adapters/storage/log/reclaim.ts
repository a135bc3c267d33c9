import { blockExpiresAt, isBlockExpired, reclaimablePoint } from '../../../src/core/retention.ts'
import type { Reclaimed, ReclaimLimits } from '../../../src/storage/contract.ts'
import type { ReadableMedium } from '../media/medium.ts'
import type { Change, FirstBlock } from './changes.ts'
import type { Committer } from './committer.ts'
import { blocksOf } from './segment.ts'
import type { Log, Run, State } from './state.ts'

/** How many logs one commit frees blocks of, so that appends do not wait long. */
const LOGS_PER_COMMIT = 256
const CHANGE_BYTES = 64

type Free = Extract<Change, { readonly kind: 'free' }>

/** What can be freed of a log. */
interface Freeable {
  readonly change: Free
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
  let freed: Free[] = []
  await committer.commit('frees', found.length * CHANGE_BYTES, (stage) => {
    freed = found
      .filter(({ change, epoch }) => stage.headOf(change.log)?.epoch === epoch)
      .map(({ change }) => change)
    return { frames: freed.map((change) => ({ changes: [change] })) }
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
  /** The block behind them. */
  #next: FirstBlock | null = null

  constructor(log: Log, limits: ReclaimLimits, blocksMax: number) {
    this.#log = log
    this.#limits = limits
    this.#blocksMax = blocksMax
    this.#point = reclaimablePoint(log.head.trims, limits.trimmedBefore)
  }

  /** Resolves to the change that frees them; undefined if there are none. */
  async changeOf(id: string, medium: ReadableMedium): Promise<Free | undefined> {
    const { first, runs, blocks, freedBelow } = this.#log
    if (first === null || !this.#isFreeable(first)) return undefined
    await this.#takeAll(id, medium, runs, blocks.slice())
    if (this.#below <= freedBelow) return undefined
    const [below, meteredBytes, next] = [this.#below, this.#meteredBytes, this.#next]
    return { kind: 'free', log: id, below, meteredBytes, first: next }
  }

  async #takeAll(id: string, medium: ReadableMedium, runs: readonly Run[], blocks: Log['blocks']) {
    const { freedBelow } = this.#log
    for (const run of runs) {
      if (this.#takeRun(run)) continue
      for await (const block of blocksOf(medium, id, run, freedBelow)) if (!this.#take(block)) return
    }
    for (const block of blocks) if (!this.#take(block)) return
  }

  #isFreeable(block: FirstBlock): boolean {
    const { extensions } = this.#log.head
    return (
      block.endSeqNum <= this.#point || isBlockExpired(blockExpiresAt(block, extensions), this.#limits.now)
    )
  }

  /** Takes a run as a whole, without a look at its blocks, if all of them can be freed. */
  #takeRun(run: Run): boolean {
    const { head, freedBelow } = this.#log
    const isExpiredRun = !head.extensions?.length && isBlockExpired(run.lastExpiry, this.#limits.now)
    const isWhole = freedBelow <= run.first.firstSeqNum && (run.endSeqNum <= this.#point || isExpiredRun)
    if (!isWhole || this.blocks + run.blocks > this.#blocksMax) return false
    this.#add(run.endSeqNum, run.blocks, run.meteredBytes)
    return true
  }

  /** Returns whether the next block may follow. */
  #take(block: FirstBlock & { readonly meteredBytes: number }): boolean {
    if (this.blocks >= this.#blocksMax || !this.#isFreeable(block)) {
      const { firstSeqNum, endSeqNum, expiresAt } = block
      this.#next = { firstSeqNum, endSeqNum, expiresAt }
      return false
    }
    this.#add(block.endSeqNum, 1, block.meteredBytes)
    return true
  }

  #add(endSeqNum: number, blocks: number, meteredBytes: number): void {
    this.#below = endSeqNum
    this.blocks += blocks
    this.#meteredBytes += meteredBytes
  }
}
