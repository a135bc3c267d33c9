import type { StorageSession } from '../../../src/storage/contract.ts'
import type { StorageFailureKind } from '../../../src/storage/errors.ts'
import type { DelayRange } from '../faults/chance.ts'
import type { FaultPoint } from '../faults/fault-points.ts'

/** The calls of the storage contract that can fail. */
export type StorageOperation = 'open' | Exclude<keyof StorageSession, 'close' | 'backgroundTurn'>

const OPERATIONS: Readonly<Record<StorageOperation, true>> = {
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

export const STORAGE_OPERATIONS: readonly string[] = Object.keys(OPERATIONS)

/** What a call is given. */
export type StorageArguments<Operation extends StorageOperation> = Operation extends 'open'
  ? []
  : Parameters<StorageSession[Exclude<Operation, 'open'>]>

/** The kinds of `StorageFailure`, and `conflict`: a `StorageConflict` that a commit or an append that was not made is told. */
export type InjectedKind = StorageFailureKind | 'conflict'

export interface FailOptions<Operation extends StorageOperation>
  extends FaultPoint<StorageArguments<Operation>> {
  /** `io` by default. */
  readonly kind?: InjectedKind
  /**
   * The call is made, and its answer is lost: whoever made it cannot know what came of it. What is behind it is made too, so a later success may tell. Without this
   * the call is not made, and the failure says so.
   */
  readonly after?: boolean
}

export interface DelayOptions<Operation extends StorageOperation>
  extends FaultPoint<StorageArguments<Operation>> {
  /** The call is made at once, and its answer comes late. Without this the call itself is held back. */
  readonly after?: boolean
}

/** What happens by chance to each call of an operation. Probabilities are from 0 to 1. */
export interface CallRates {
  /** That it fails and is not made. */
  readonly before?: number
  /** That it is made and its answer is lost. `before` and `after` together are at most 1. */
  readonly after?: number
  /** How it fails; `io` by default. */
  readonly kind?: StorageFailureKind
  /** How long it is held back, or its answer: one or the other, evenly. */
  readonly delay?: DelayRange
}

export interface ReadRates extends CallRates {
  /** That a read gives only the first of its blocks: at least one, never all when there are several. */
  readonly torn?: number
}

/** Not for storages that promise `reliable` notifications, but for `duplicate`. */
export interface NotificationRates {
  readonly drop?: number
  readonly duplicate?: number
  readonly delay?: DelayRange
}

export type StorageRates = {
  readonly [Operation in Exclude<StorageOperation, 'read'>]?: CallRates
} & {
  readonly read?: ReadRates
  readonly notification?: NotificationRates
}

/**
 * One fault that was injected. `call` counts the calls of the operation, of all sessions, from 1: what happened to `append` 17 by chance happens again on a new storage
 * with `fail('append', { nth: 17 })`.
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
  /** `blocks` is how many of them were given. */
  | {
      readonly fault: 'torn read'
      readonly operation: 'read'
      readonly call: number
      readonly blocks: number
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
