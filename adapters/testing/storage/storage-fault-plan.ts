import { unknownMember } from '../../../src/model/validation.ts'
import { FaultLog, type FaultPoint, FaultPoints } from '../faults/planned-faults.ts'
import {
  type InjectedKind,
  STORAGE_OPERATIONS,
  type StorageFault,
  type StorageOperation,
} from './storage-faults.ts'

export type PlannedFault =
  | { readonly fault: 'failure'; readonly kind: InjectedKind; readonly after: boolean }
  | { readonly fault: 'delay'; readonly delayMs: number; readonly after: boolean }
  | { readonly fault: 'torn read' | 'dropped' | 'duplicated' }

/** The faults of one call. */
export interface Injection {
  readonly operation: StorageOperation
  readonly call: number
  /** The delay of the call. */
  readonly holdMs: number
  /** The delay of its result. */
  readonly resultHoldMs: number
  readonly failure: { readonly kind: InjectedKind; readonly after: boolean } | undefined
  readonly isTorn: boolean
}

/** The faults of one notification. */
export interface NotificationInjection {
  readonly dropped: boolean
  readonly duplicated: boolean
  readonly delayMs: number
}

/** Decides the faults of each call and notification. Counts and logs them. */
export class StorageFaultPlan {
  readonly log = new FaultLog<StorageFault>()
  readonly #points = new Map<string, FaultPoints<readonly unknown[], PlannedFault>>()
  readonly #calls = new Map<string, number>()

  /** Plans a fault of an operation, or of notifications. */
  add(
    operation: StorageOperation | 'notification',
    fault: PlannedFault,
    point: FaultPoint<readonly unknown[]>,
  ): void {
    if (operation !== 'notification' && !Object.hasOwn(STORAGE_OPERATIONS, operation)) {
      throw unknownMember(operation, STORAGE_OPERATIONS)
    }
    const points = this.#points.get(operation) ?? new FaultPoints()
    this.#points.set(operation, points)
    points.add(fault, point)
  }

  heal(): void {
    this.#points.clear()
  }

  injectionOf(operation: StorageOperation, args: readonly unknown[]): Injection {
    const { call, faults } = this.#next(operation, args)
    const failure = faults.find(({ fault }) => fault === 'failure') as Injection['failure']
    const [holdMs, resultHoldMs] = [delayMsOf(faults, false), delayMsOf(faults, true)]
    const isTorn = faults.some(({ fault }) => fault === 'torn read')
    if (holdMs > 0) this.log.add({ fault: 'delay', operation, call, delayMs: holdMs, after: false })
    if (failure !== undefined) {
      this.log.add({ fault: 'failure', operation, call, kind: failure.kind, after: failure.after })
    }
    if (resultHoldMs > 0) {
      this.log.add({ fault: 'delay', operation, call, delayMs: resultHoldMs, after: true })
    }
    return { operation, call, holdMs, resultHoldMs, failure, isTorn }
  }

  notificationInjection(logId: string): NotificationInjection {
    const operation = 'notification'
    const { call, faults } = this.#next(operation, [logId])
    const isPlanned = (wanted: string) => faults.some(({ fault }) => fault === wanted)
    const dropped = isPlanned('dropped')
    const duplicated = !dropped && isPlanned('duplicated')
    const delayMs = dropped ? 0 : delayMsOf(faults, false)
    if (dropped) this.log.add({ fault: 'dropped', operation, call })
    if (duplicated) this.log.add({ fault: 'duplicated', operation, call })
    if (delayMs > 0) this.log.add({ fault: 'delay', operation, call, delayMs })
    return { dropped, duplicated, delayMs }
  }

  #next(operation: string, args: readonly unknown[]) {
    const call = (this.#calls.get(operation) ?? 0) + 1
    this.#calls.set(operation, call)
    return { call, faults: this.#points.get(operation)?.matching(...args) ?? [] }
  }
}

function delayMsOf(faults: readonly PlannedFault[], isAfter: boolean): number {
  let sum = 0
  for (const fault of faults) if (fault.fault === 'delay' && fault.after === isAfter) sum += fault.delayMs
  return sum
}
