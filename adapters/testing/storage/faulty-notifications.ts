import type { StorageContext } from '../../../src/storage/contract.ts'
import type { StorageFaultPlan } from './storage-fault-plan.ts'

/** What one engine is told of changed logs, with faults. */
export class FaultyNotifications {
  readonly #context: StorageContext
  readonly #plan: StorageFaultPlan
  readonly #isConnected: () => boolean
  /** Logs that changed while there was no connection. */
  readonly #missed = new Set<string>()
  readonly #cancels = new Set<() => void>()
  #isOver = false

  constructor(context: StorageContext, plan: StorageFaultPlan, isConnected: () => boolean) {
    this.#context = context
    this.#plan = plan
    this.#isConnected = isConnected
  }

  /** The storage tells of a change. */
  changed(logId: string): void {
    if (!this.#isConnected()) {
      this.#missed.add(logId)
      return
    }
    const { dropped, duplicated, delayMs } = this.#plan.notificationInjection()
    if (dropped) return
    for (let times = duplicated ? 2 : 1; times > 0; times--) this.#tell(logId, delayMs)
  }

  /** There is a connection again: no change stays untold. */
  restored(): void {
    for (const logId of this.#missed) queueMicrotask(() => this.#tell(logId, 0))
    this.#missed.clear()
  }

  end(): void {
    this.#isOver = true
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
  }

  #tell(logId: string, delayMs: number): void {
    if (this.#isOver) return
    if (delayMs === 0) {
      this.#context.onLogChanged(logId)
      return
    }
    const cancel = this.#context.clock.schedule(delayMs, () => {
      this.#cancels.delete(cancel)
      this.#context.onLogChanged(logId)
    })
    this.#cancels.add(cancel)
  }
}
