import type { Clock } from '../../../src/runtime/clock.ts'
import type {
  AppendRequest,
  CatalogChange,
  Collection,
  HeadIdentity,
  ListRange,
  ReadRange,
  ReclaimLimits,
  StorageSession,
} from '../../../src/storage/contract.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { delayMsOf, Holds } from '../faults/planned-faults.ts'
import {
  type InjectedFailure,
  injectionOf,
  type StorageArguments,
  type StorageFaultPlan,
  type StorageOperation,
} from './storage-faults.ts'

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
  readonly #plan: StorageFaultPlan
  readonly #connectionFailure: () => StorageFailure | undefined
  readonly #onClose: () => void
  readonly #onClosed: () => void
  /** Pending calls, each with a promise that resolves once it has settled. */
  readonly #pending = new Map<PendingCall, Promise<void>>()
  readonly #holds = new Holds()
  readonly #appendOrder = new AppendOrder()
  #end: 'closed' | 'crashed' | undefined
  #stopWaiting: () => void = () => {}
  #closing: Promise<void> | undefined

  constructor(
    inner: StorageSession,
    storage: {
      readonly clock: Clock
      readonly plan: StorageFaultPlan
      /** Returns the error of new calls while the connection is lost. */
      readonly connectionFailure: () => StorageFailure | undefined
      /** Called when the session begins to close: notifications must stop. */
      readonly onClose: () => void
      /** Called once the wrapped session is closed. */
      readonly onClosed: () => void
    },
  ) {
    if (inner.electForBackgroundWork !== undefined) {
      this.electForBackgroundWork = inner.electForBackgroundWork.bind(inner)
    }
    if (inner.now !== undefined) this.now = inner.now.bind(inner)
    if (inner.clockOffsetMs !== undefined) this.clockOffsetMs = inner.clockOffsetMs.bind(inner)
    this.#inner = inner
    this.#clock = storage.clock
    this.#plan = storage.plan
    this.#connectionFailure = storage.connectionFailure
    this.#onClose = storage.onClose
    this.#onClosed = storage.onClosed
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
    this.#closing ??= this.#close().finally(this.#onClosed)
    return this.#closing
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
    this.#onClose()
    this.disconnect()
    // A `close` in progress stops waiting for pending calls: one that never settles must not block the crash.
    this.#stopWaiting()
    this.#closing ??= this.#inner.close().finally(this.#onClosed)
    await this.#closing
  }

  async #close(): Promise<void> {
    this.#end = 'closed'
    this.#holds.release()
    this.#onClose()
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
    const rejection = this.#ended() ?? this.#connectionFailure()
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
    call: PendingCall,
    args: readonly unknown[],
    run: () => Promise<Result>,
  ): Promise<Result> {
    const { operation } = call
    const { call: number, faults, failure } = injectionOf(this.#plan, operation, args)
    const [holdMs, resultHoldMs] = [delayMsOf(faults, false), delayMsOf(faults, true)]
    const logId = operation === 'append' ? (args[0] as AppendRequest).logId : undefined
    const hold = this.#holds.begin(this.#clock)
    const held = holdMs > 0 ? hold(holdMs) : undefined
    const turn = logId === undefined ? held : this.#appendOrder.turn(logId, held)
    if (turn !== undefined) await turn
    const takesEffect = !call.isDisconnected && (failure === undefined || failure.after)
    const running = takesEffect ? run() : undefined
    if (logId !== undefined) this.#appendOrder.done(logId, turn)
    if (failure !== undefined && !failure.after) throw injectedError(failure)
    if (running === undefined) throw lostResult(operation)
    if (resultHoldMs > 0) {
      await running.catch(() => {})
      await hold(resultHoldMs)
    }
    const result = await running
    if (failure !== undefined) throw injectedError(failure)
    const isTorn = faults.some(({ fault }) => fault === 'torn read')
    if (isTorn && Array.isArray(result) && result.length > 1) {
      this.#plan.log({ fault: 'torn read', operation: 'read', call: number })
      return result.slice(0, 1) as Result
    }
    return result
  }

  #ended(): StorageFailure | undefined {
    if (this.#end === undefined) return undefined
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

export function injectedError({
  operation,
  call,
  kind,
  after,
}: InjectedFailure): StorageFailure | StorageConflict {
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
