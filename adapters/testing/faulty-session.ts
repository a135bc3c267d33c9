import type { Clock } from '../../src/runtime/clock.ts'
import type {
  AppendRequest,
  CatalogChange,
  Collection,
  HeadIdentity,
  ListRange,
  ReadRange,
  ReclaimLimits,
  StorageContext,
  StorageSession,
} from '../../src/storage/contract.ts'
import { StorageConflict, StorageFailure, type StorageFailureKind } from '../../src/storage/errors.ts'
import { type FaultPlan, Holds } from './planned-faults.ts'

export const STORAGE_OPERATIONS = {
  open: true,
  get: true,
  list: true,
  commit: true,
  head: true,
  append: true,
  read: true,
  reclaim: true,
  measure: true,
} as const

/** The calls of the storage contract that can fail. */
export type StorageOperation = keyof typeof STORAGE_OPERATIONS

/** The arguments of a call. */
export type StorageArguments<Operation extends StorageOperation> = Operation extends 'open'
  ? []
  : Parameters<StorageSession[Exclude<Operation, 'open'>]>

/**
 * The kinds of `StorageFailure`, and `conflict` for a `StorageConflict`, which only commits and appends can
 * have.
 */
export type InjectedKind = StorageFailureKind | 'conflict'

/**
 * An injected fault: a failure of `append` with `call: 17` is repeated on a new storage by `fail('append', {
 * nth: 17 })`.
 */
export interface StorageFault {
  /** The fault that was injected. */
  readonly fault:
    | 'failure'
    | 'delay'
    | 'torn read'
    | 'dropped'
    | 'connection lost'
    | 'connection restored'
    | 'crash'
  /** The call; undefined if the fault affects the whole storage. */
  readonly operation?: StorageOperation | 'notification' | undefined
  /** The number of the call among those of the operation in all sessions, from 1. */
  readonly call?: number | undefined
  /** The kind of a failure. */
  readonly kind?: InjectedKind | undefined
  /** Whether the fault affects the result of the call. */
  readonly after?: boolean | undefined
  /** The length of a delay, in milliseconds. */
  readonly delayMs?: number | undefined
}

interface PlannedFailure {
  readonly fault: 'failure'
  readonly kind: InjectedKind
  readonly after: boolean
}

/** The state that the sessions of a faulty storage share. */
export interface StorageFaults {
  readonly plan: FaultPlan<PlannedFailure | { readonly fault: 'torn read' | 'dropped' }, StorageFault>
  isConnected: boolean
  /** The sessions that the storage has not closed. */
  readonly sessions: Set<FaultySession>
}

type SessionOperation = Exclude<StorageOperation, 'open'>

/** A call that has not settled. */
interface PendingCall {
  readonly operation: SessionOperation
  readonly reject: (error: unknown) => void
  /**
   * Whether the call was rejected because the connection was lost. If it has not reached the storage, it
   * never will.
   */
  isDisconnected: boolean
}

/** The session of one engine, with faults. */
export class FaultySession implements StorageSession {
  /** Absent if the storage has none, because engines distinguish the two. */
  readonly electForBackgroundWork?: NonNullable<StorageSession['electForBackgroundWork']>
  /** The clock of the storage. Reading it does not fail. */
  readonly now?: NonNullable<StorageSession['now']>
  readonly clockOffsetMs?: NonNullable<StorageSession['clockOffsetMs']>
  readonly #inner: StorageSession
  readonly #clock: Clock
  readonly #onLogChanged: (logId: string) => void
  readonly #faults: StorageFaults
  /** Pending calls, each with a promise that resolves once it has settled. */
  readonly #pending = new Map<PendingCall, Promise<void>>()
  readonly #holds = new Holds()
  readonly #appendOrder = new AppendOrder()
  /** Logs that changed while there was no connection. */
  readonly #missed = new Set<string>()
  #end: 'closed' | 'crashed' | undefined
  #stopWaiting: () => void = () => {}
  #closing: Promise<void> | undefined

  constructor(inner: StorageSession, { clock, onLogChanged }: StorageContext, faults: StorageFaults) {
    if (inner.electForBackgroundWork !== undefined) {
      this.electForBackgroundWork = inner.electForBackgroundWork.bind(inner)
    }
    if (inner.now !== undefined) this.now = inner.now.bind(inner)
    if (inner.clockOffsetMs !== undefined) this.clockOffsetMs = inner.clockOffsetMs.bind(inner)
    this.#inner = inner
    this.#clock = clock
    this.#onLogChanged = onLogChanged
    this.#faults = faults
  }

  get(collection: Collection, key: string) {
    return this.#call('get', [collection, key], () => this.#inner.get(collection, key))
  }

  list(collection: Collection, range: ListRange) {
    return this.#call('list', [collection, range], () => this.#inner.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]) {
    return this.#call('commit', [changes], () => this.#inner.commit(changes))
  }

  head(logId: string, known?: HeadIdentity) {
    return this.#call('head', [logId], () => this.#inner.head(logId, known))
  }

  append(request: AppendRequest) {
    return this.#call('append', [request], () => this.#inner.append(request))
  }

  read(logId: string, range: ReadRange) {
    return this.#call('read', [logId, range], () => this.#inner.read(logId, range))
  }

  reclaim(limits: ReclaimLimits) {
    return this.#call('reclaim', [limits], () => this.#inner.reclaim(limits))
  }

  measure(logIds: readonly string[]) {
    return this.#call('measure', [logIds], () => this.#inner.measure(logIds))
  }

  /** Releases delayed calls, waits for pending ones and closes the wrapped session. */
  close(): Promise<void> {
    this.#closing ??= this.#close().finally(() => this.#faults.sessions.delete(this))
    return this.#closing
  }

  /** Forwards a notification of the storage. */
  changed(logId: string): void {
    if (!this.#faults.isConnected) {
      this.#missed.add(logId)
      return
    }
    const { fault } = this.#faults.plan.next('notification', [logId], { operation: 'notification' })
    if (fault === undefined) this.#notify(logId)
  }

  /** Notifies of the changes during a lost connection. */
  reconnected(): void {
    for (const logId of this.#missed) queueMicrotask(() => this.#notify(logId))
    this.#missed.clear()
  }

  /** Rejects all pending calls, whether they take effect or not. */
  disconnect(): void {
    for (const call of this.#pending.keys()) {
      call.isDisconnected = true
      call.reject(lostResult(call.operation))
    }
    this.#holds.release()
  }

  /** Releases all delayed calls. */
  release(): void {
    this.#holds.release()
  }

  /** Simulates the end of the process. Resolves when the storage can be opened again. */
  async crash(): Promise<void> {
    this.#end ??= 'crashed'
    this.disconnect()
    // A `close` in progress stops waiting for pending calls: one that never settles must not block the crash.
    this.#stopWaiting()
    this.#closing ??= this.#inner.close().finally(() => this.#faults.sessions.delete(this))
    await this.#closing
  }

  #notify(logId: string): void {
    if (this.#end === undefined) this.#onLogChanged(logId)
  }

  async #close(): Promise<void> {
    this.#end = 'closed'
    this.#holds.release()
    const crashed = new Promise<void>((resolve) => {
      this.#stopWaiting = resolve
    })
    await Promise.race([Promise.all(this.#pending.values()), crashed])
    await this.#inner.close()
  }

  #call<Operation extends SessionOperation, Result>(
    operation: Operation,
    args: StorageArguments<Operation>,
    run: () => Promise<Result>,
  ): Promise<Result> {
    const rejection = this.#rejection()
    if (rejection !== undefined) return Promise.reject(rejection)
    return new Promise((resolve, reject) => {
      const call: PendingCall = { operation, reject, isDisconnected: false }
      const done = this.#perform(call, args, run)
        .then(resolve, reject)
        .finally(() => this.#pending.delete(call))
      this.#pending.set(call, done)
    })
  }

  /** Makes the call. Without a fault, it reaches the storage before this returns. */
  async #perform<Result>(
    pending: PendingCall,
    args: readonly unknown[],
    run: () => Promise<Result>,
  ): Promise<Result> {
    const { operation } = pending
    const { call, fault, delayMs, resultDelayMs } = this.#faults.plan.next(operation, args, { operation })
    const failure = fault?.fault === 'failure' ? fault : undefined
    const logId = operation === 'append' ? (args[0] as AppendRequest).logId : undefined
    const hold = this.#holds.begin(this.#clock)
    const held = delayMs > 0 ? hold(delayMs) : undefined
    const turn = logId === undefined ? held : this.#appendOrder.turn(logId, held)
    if (turn !== undefined) await turn
    const takesEffect = !pending.isDisconnected && failure?.after !== false
    const running = takesEffect ? run() : undefined
    if (logId !== undefined) this.#appendOrder.done(logId, turn)
    if (failure?.after === false) throw injectedError(operation, call, failure)
    if (running === undefined) throw lostResult(operation)
    if (resultDelayMs > 0) {
      await running.catch(() => {})
      await hold(resultDelayMs)
    }
    const result = await running
    if (failure !== undefined) throw injectedError(operation, call, failure)
    return fault?.fault === 'torn read' ? ((result as unknown[]).slice(0, 1) as Result) : result
  }

  /** Returns the error of every new call, if there is one. */
  #rejection(): StorageFailure | undefined {
    if (this.#end === undefined) return this.#faults.isConnected ? undefined : noConnection()
    const message = this.#end === 'closed' ? 'the storage is closed' : 'the storage crashed: open it again'
    return new StorageFailure('closed', message, { nothingWritten: true })
  }
}

/** Keeps the appends of each log in order while some of them are delayed. */
class AppendOrder {
  /** The turn of the last append of each log, until it has begun. */
  readonly #turns = new Map<string, Promise<void>>()

  /**
   * Returns a promise that resolves when the append may begin: after `held` and after the earlier appends of
   * the log. Returns undefined if it may begin at once.
   */
  turn(logId: string, held: Promise<void> | undefined): Promise<void> | undefined {
    const before = this.#turns.get(logId)
    if (before === undefined && held === undefined) return undefined
    const turn = Promise.all([before, held]).then(() => {})
    this.#turns.set(logId, turn)
    return turn
  }

  /** Called once the append has begun or was skipped. */
  done(logId: string, turn: Promise<void> | undefined): void {
    if (turn !== undefined && this.#turns.get(logId) === turn) this.#turns.delete(logId)
  }
}

const WRITES: ReadonlySet<StorageOperation> = new Set(['commit', 'append', 'reclaim'])

export function injectedError(
  operation: StorageOperation,
  call: number,
  { kind, after }: PlannedFailure,
): StorageFailure | StorageConflict {
  const message = `injected: ${operation} ${call} ${after ? 'took effect, its result is lost' : 'had no effect'}`
  if (kind === 'conflict') return new StorageConflict(message)
  return new StorageFailure(kind, message, { nothingWritten: !after || !WRITES.has(operation) })
}

/** The failure of a call whose connection was lost, so that its outcome is unknown. */
function lostResult(operation: StorageOperation): StorageFailure {
  const message = `injected: the connection was lost before the result of ${operation}`
  return new StorageFailure('io', message, { nothingWritten: !WRITES.has(operation) })
}

/** The failure of a call made while the connection is lost. */
export function noConnection(): StorageFailure {
  return new StorageFailure('io', 'injected: no connection to the storage', { nothingWritten: true })
}
