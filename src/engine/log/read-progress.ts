import { afterDelivering, isExhausted, type ReadLimits } from '../../core/read-limits.ts'
import type { ReadPlan } from '../../core/read-plan.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'

/** How far a read has come. Shared by its history and live phases. */
export class ReadProgress {
  /** Sequence number of the next record to deliver. */
  position: number
  /** The limits that remain. */
  limits: ReadLimits
  #deliveredBytes = 0

  constructor({ floor, limits }: Pick<ReadPlan, 'floor' | 'limits'>) {
    this.position = floor
    this.limits = limits
  }

  /** Metered bytes. */
  get deliveredBytes(): number {
    return this.#deliveredBytes
  }

  /** Counts a delivered batch. Returns whether the limits admit more. */
  delivered({ count, meteredBytes }: ReadBatch): boolean {
    this.#deliveredBytes += meteredBytes
    this.limits = afterDelivering(this.limits, count, meteredBytes)
    return !isExhausted(this.limits)
  }
}
