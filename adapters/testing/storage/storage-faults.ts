import type { StorageSession } from '../../../src/storage/contract.ts'
import type { StorageFailureKind } from '../../../src/storage/errors.ts'
import type { FaultPoint } from '../faults/planned-faults.ts'
import type { DelayRange } from '../faults/random-faults.ts'

/**
 * The calls of the storage contract that can fail.
 *
 * ```ts
 * const operations: StorageOperation[] = ['append', 'commit']
 * const faulty = faultyStorage(storage)
 * for (const operation of operations) faulty.failNext(operation)
 * ```
 */
export type StorageOperation =
  | 'open'
  | Exclude<
      keyof StorageSession,
      'close' | 'check' | 'isFull' | 'electForBackgroundWork' | 'isExclusive' | 'now' | 'clockOffsetMs'
    >

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

/**
 * The arguments of a call.
 *
 * ```ts
 * const isLarge = (...[{ blocks }]: StorageArguments<'append'>) => blocks.length > 1
 * faultyStorage(storage).fail('append', { when: isLarge })
 * ```
 */
export type StorageArguments<Operation extends StorageOperation> = Operation extends 'open'
  ? []
  : Parameters<StorageSession[Exclude<Operation, 'open'>]>

/**
 * The kinds of `StorageFailure`, and `conflict` for a `StorageConflict`, which only commits and appends can
 * have.
 *
 * ```ts
 * const kinds: InjectedKind[] = ['io', 'quota', 'conflict']
 * const faulty = faultyStorage(storage)
 * for (const kind of kinds) faulty.failNext('append', { kind })
 * ```
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

/** The probabilities of faults for each call of an operation, from 0 to 1. */
export interface CallRates {
  /** That the call fails without effect. 0 by default. */
  readonly before?: number | undefined
  /**
   * That the call takes effect and its result is lost. The sum with `before` must not exceed 1. 0 by default.
   */
  readonly after?: number | undefined
  /** The kind of failure. `io` by default. */
  readonly kind?: StorageFailureKind | undefined
  /** The delay of the call or of its result, with equal probability. None by default. */
  readonly delay?: DelayRange | undefined
}

/** Probabilities of faults of a read. */
export interface ReadRates extends CallRates {
  /**
   * That a read returns only some of its blocks: at least the first, and not all if there are several. 0 by
   * default.
   */
  readonly torn?: number | undefined
}

/** Faults of notifications. Storages with `reliable` notifications permit only `duplicate`. */
export interface NotificationRates {
  /** That it is lost. */
  readonly drop?: number | undefined
  /** That it arrives twice. */
  readonly duplicate?: number | undefined
  /** How long it is held back. */
  readonly delay?: DelayRange | undefined
}

/** Probabilities of faults by operation, and of notifications. */
export type StorageRates = {
  readonly [Operation in Exclude<StorageOperation, 'read'>]?: CallRates
} & {
  readonly read?: ReadRates | undefined
  readonly notification?: NotificationRates | undefined
}

/**
 * An injected fault. `call` counts the calls of the operation in all sessions, from 1: a random failure of
 * `append` 17 is repeated on a new storage by `fail('append', { nth: 17 })`.
 *
 * ```ts
 * const faulty = faultyStorage(storage, { rates: { append: { after: 0.01, delay: ['10ms', '1s'] } } })
 * for (const entry of faulty.log) {
 *   if (entry.fault === 'failure') console.log(entry.operation, entry.call, entry.kind, entry.after)
 *   if (entry.fault === 'delay') console.log(entry.operation, entry.call, entry.delayMs)
 *   if (entry.fault === 'torn read') console.log(entry.call, entry.blocks)
 * }
 * ```
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
  /** `blocks` is the number of returned blocks. */
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
