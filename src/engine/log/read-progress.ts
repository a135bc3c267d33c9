import { afterDelivering, isExhausted, type ReadLimits, type ReadPlan } from '../../core/read-plan.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'

/** How far a read has come. Shared by its history and live phases. */
export class ReadProgress {
  /** Sequence number of the next record to deliver. */
  position: number
  /** The limits that remain. */
  limits: ReadLimits
  /** Whether it has no limits at all, as most sessions. */
  readonly isUnlimited: boolean
  #deliveredBytes = 0

  constructor({ floor, limits }: Pick<ReadPlan, 'floor' | 'limits'>) {
    this.position = floor
    this.limits = limits
    const { count, bytes, until } = limits
    this.isUnlimited = Math.min(count, bytes, until) === Number.POSITIVE_INFINITY
  }

  /** Metered bytes. */
  get deliveredBytes(): number {
    return this.#deliveredBytes
  }

  /** Counts a delivered batch. Returns whether the limits admit more. */
  delivered({ count, meteredBytes }: ReadBatch): boolean {
    this.#deliveredBytes += meteredBytes
    if (this.isUnlimited) return true
    this.limits = afterDelivering(this.limits, count, meteredBytes)
    return !isExhausted(this.limits)
  }
}
