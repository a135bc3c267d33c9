import type { StorageSession } from '../../../src/storage/contract.ts'
import type { StorageFailureKind } from '../../../src/storage/errors.ts'
import { type FaultPlan, type FaultPoint, inTimeOrder, type PlannedDelay } from '../faults/planned-faults.ts'

/** The calls of the storage contract that can fail. */
export type StorageOperation =
  | 'open'
  | Exclude<
      keyof StorageSession,
      'close' | 'check' | 'isFull' | 'electForBackgroundWork' | 'isExclusive' | 'now' | 'clockOffsetMs'
    >

export const STORAGE_OPERATIONS: Readonly<Record<StorageOperation, true>> = {
  open: true,
  get: true,
  list: true,
  commit: true,
  head: true,
  append: true,
  read: true,
  reclaim: true,
  measure: true,
}

/** The arguments of a call. */
export type StorageArguments<Operation extends StorageOperation> = Operation extends 'open'
  ? []
  : Parameters<StorageSession[Exclude<Operation, 'open'>]>

/**
 * The kinds of `StorageFailure`, and `conflict` for a `StorageConflict`, which only commits and appends can
 * have.
 */
export type InjectedKind = StorageFailureKind | 'conflict'

/** Which calls `fail` applies to, and how they fail. */
export interface FailOptions<Operation extends StorageOperation>
  extends FaultPoint<StorageArguments<Operation>> {
  /** `io` by default. */
  readonly kind?: InjectedKind | undefined
  /**
   * The call takes effect and its result is lost, so its outcome is unknown to the caller. Calls after it
   * take effect too, and their success may reveal it. False by default: the call has no effect, and the
   * failure says so.
   */
  readonly after?: boolean | undefined
}

/** Which calls `delay` applies to, and on which side. */
export interface DelayOptions<Operation extends StorageOperation>
  extends FaultPoint<StorageArguments<Operation>> {
  /** Delays the result instead of the call. False by default. */
  readonly after?: boolean | undefined
}

/**
 * An injected fault. `call` counts the calls of the operation in all sessions, from 1: a failure of `append`
 * 17 is repeated on a new storage by `fail('append', { nth: 17 })`.
 */
export type StorageFault =
  | {
      readonly fault: 'failure'
      readonly operation: StorageOperation
      readonly call: number
      readonly kind: InjectedKind
      readonly after: boolean
    }
  | {
      readonly fault: 'delay'
      readonly operation: StorageOperation
      readonly call: number
      readonly delayMs: number
      readonly after: boolean
    }
  | {
      readonly fault: 'torn read'
      readonly operation: 'read'
      readonly call: number
    }
  | {
      readonly fault: 'dropped' | 'duplicated'
      readonly operation: 'notification'
      readonly call: number
    }
  | {
      readonly fault: 'delay'
      readonly operation: 'notification'
      readonly call: number
      readonly delayMs: number
    }
  | { readonly fault: 'connection lost' | 'connection restored' | 'crash' }

export type PlannedStorageFault =
  | { readonly fault: 'failure'; readonly kind: InjectedKind; readonly after: boolean }
  | { readonly fault: 'torn read' | 'dropped' | 'duplicated' }
  | PlannedDelay

export type StorageFaultPlan = FaultPlan<PlannedStorageFault, StorageFault>

/** The failure of a call, if it has one. */
export interface InjectedFailure {
  readonly operation: StorageOperation
  readonly call: number
  readonly kind: InjectedKind
  readonly after: boolean
}

/** Returns the faults of a call and its failure. Logs them, but for a torn read, which may have no effect. */
export function injectionOf(
  plan: StorageFaultPlan,
  operation: StorageOperation,
  args: readonly unknown[],
): {
  readonly call: number
  readonly faults: readonly PlannedStorageFault[]
  readonly failure: InjectedFailure | undefined
} {
  const { call, faults } = plan.next(operation, args)
  const planned = faults.find((fault) => fault.fault === 'failure')
  for (const fault of inTimeOrder(faults, planned)) plan.log({ operation, call, ...fault } as StorageFault)
  return { call, faults, failure: planned && { operation, call, kind: planned.kind, after: planned.after } }
}
