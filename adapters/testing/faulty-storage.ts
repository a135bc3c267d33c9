import { invalid } from '../../../src/model/errors.ts'
import {
  assertOptions,
  hasMethod,
  type MembersOf,
  oneOf,
  unknownMember,
} from '../../../src/model/validation.ts'
import type {
  Storage,
  StorageContext,
  StorageManifest,
  StorageSession,
} from '../../../src/storage/contract.ts'
import { delayMsOf, FAULT_POINT, FaultPlan, type FaultPoint, Holds } from '../faults/planned-faults.ts'
import { millisecondsIn } from '../virtual-clock.ts'
import { FaultySession, injectedError, noConnection } from './faulty-session.ts'
import {
  type DelayOptions,
  type FailOptions,
  type InjectedKind,
  injectionOf,
  type PlannedStorageFault,
  STORAGE_OPERATIONS,
  type StorageArguments,
  type StorageFault,
  type StorageFaultPlan,
  type StorageOperation,
} from './storage-faults.ts'

/** Selects the notifications that a fault affects. All from now on by default, until `heal()`. */
export type NotificationPoint = FaultPoint<[logId: string]>

/** Options of `faultyStorage`. */
export interface FaultyStorageOptions {
  /**
   * The guarantee of notifications in the manifest. By default that of the storage, but `hint` instead of
   * `reliable`, because notifications may be lost here, and the engine must poll. With `reliable` they cannot
   * be dropped or delayed.
   */
  readonly notifications?: StorageManifest['notifications'] | undefined
}

/**
 * A storage with injected faults. Faults without `nth` last until {@link heal}. Delays use the engine's
 * clock.
 *
 * The storage contract holds in spite of faults: appends and commits are atomic, appends to one log take
 * effect in the order of the calls, and failures reject with `StorageFailure` or `StorageConflict`, which
 * state correctly whether nothing was written.
 */
export interface FaultyStorage extends Storage {
  /**
   * Makes calls of the operation fail: all from now on, or those selected by the options. Throws `invalid`
   * for invalid options.
   */
  fail<Operation extends StorageOperation>(operation: Operation, options?: FailOptions<Operation>): void
  /** Makes the next call fail, or the next that matches `when`. */
  failNext<Operation extends StorageOperation>(
    operation: Operation,
    options?: Omit<FailOptions<Operation>, 'nth'>,
  ): void
  /**
   * Delays calls of the operation, or their results, by milliseconds or by `'500ms'`, `'2s'`. Closing the
   * storage releases them.
   */
  delay<Operation extends StorageOperation>(
    operation: Operation,
    duration: number | string,
    options?: DelayOptions<Operation>,
  ): void
  /** Makes reads return only their first block. */
  tearReads(point?: FaultPoint<StorageArguments<'read'>>): void
  /**
   * Drops notifications: engines discover changes by polling. Throws `invalid` for `reliable`
   * notifications.
   */
  dropNotifications(point?: NotificationPoint): void
  /** Sends notifications twice. */
  duplicateNotifications(point?: NotificationPoint): void
  /** Delays notifications. Throws `invalid` for `reliable` notifications. */
  delayNotifications(duration: number | string, point?: NotificationPoint): void
  /** Fails calls in flight, whether they took effect or not, and every call until {@link restore}. */
  loseConnection(): void
  /** Ends {@link loseConnection}, and notifies engines of the logs that changed meanwhile. */
  restore(): void
  /**
   * Simulates a crash of the process: calls in flight fail, whether they took effect or not, and open
   * sessions are closed. Resolves when the storage can be opened again. Acknowledged writes survive if the
   * storage is durable.
   */
  crash(): Promise<void>
  /** Ends all faults, delays and a lost connection. */
  heal(): void
  /** The latest 10,000 injected faults. */
  readonly log: readonly StorageFault[]
}

const INJECTED_KINDS: readonly InjectedKind[] = [
  'io',
  'quota',
  'closed',
  'blocked',
  'denied',
  'corrupt',
  'upgraded',
  'conflict',
]
const DELAY_OPTIONS = { ...FAULT_POINT, after: 'boolean' } satisfies MembersOf<DelayOptions<'read'>>
const FAIL_OPTIONS: MembersOf<FailOptions<'read'>> = {
  ...DELAY_OPTIONS,
  kind: oneOf(INJECTED_KINDS),
}
const FAULTY_STORAGE_OPTIONS: MembersOf<FaultyStorageOptions> = {
  notifications: oneOf(['none', 'hint', 'reliable']),
}

/**
 * Wraps a storage in a {@link FaultyStorage}. Without faults it behaves like the storage.
 *
 * ```ts
 * const storage = faultyStorage(memory())
 * const hw = await open({ storage, clock: virtualClock() })
 * storage.fail('append', { kind: 'quota', nth: 3 })
 * storage.delay('read', '2s')
 * ```
 */
export function faultyStorage(storage: Storage, options: FaultyStorageOptions = {}): FaultyStorage {
  assertOptions(options, FAULTY_STORAGE_OPTIONS)
  hasMethod('open', 'a storage, such as `memory()`')(storage, 'storage')
  return new StorageWithFaults(storage, options)
}

class StorageWithFaults implements FaultyStorage {
  readonly manifest: StorageManifest
  readonly #inner: Storage
  readonly #plan: StorageFaultPlan = new FaultPlan()
  /** The sessions that the storage has not closed. */
  readonly #sessions = new Map<FaultySession, FaultyNotifications>()
  readonly #openings = new Set<Promise<unknown>>()
  /** Delays of `open`. */
  readonly #holds = new Holds()
  #isConnected = true
  /** The number of lost connections and crashes. */
  #breaks = 0

  constructor(inner: Storage, { notifications }: FaultyStorageOptions) {
    const own = inner.manifest.notifications
    const promised = notifications ?? (own === 'reliable' ? 'hint' : own)
    this.#inner = inner
    this.manifest = { ...inner.manifest, notifications: promised }
  }

  get log(): readonly StorageFault[] {
    return this.#plan.logged
  }

  open(context: StorageContext): Promise<StorageSession> {
    const opening = this.#open(context)
    const end = () => void this.#openings.delete(opening)
    this.#openings.add(opening)
    opening.then(end, end)
    return opening
  }

  async #open(context: StorageContext): Promise<StorageSession> {
    const { faults, failure } = injectionOf(this.#plan, 'open', [])
    const hold = this.#holds.begin(context.clock)
    const breaks = this.#breaks
    await hold(delayMsOf(faults, false))
    if (!this.#isConnected || this.#breaks > breaks) throw noConnection()
    if (failure !== undefined && !failure.after) throw injectedError(failure)
    const notifications = new FaultyNotifications(context, this.#plan, () => this.#isConnected)
    const inner = await this.#inner.open({
      ...context,
      onLogChanged: (logId) => notifications.changed(logId),
    })
    const session: FaultySession = new FaultySession(inner, {
      clock: context.clock,
      plan: this.#plan,
      connectionFailure: () => (this.#isConnected ? undefined : noConnection()),
      onClose: () => notifications.end(),
      onClosed: () => void this.#sessions.delete(session),
    })
    this.#sessions.set(session, notifications)
    await hold(delayMsOf(faults, true))
    if (failure === undefined && this.#breaks === breaks) return session
    await session.close()
    throw failure === undefined ? noConnection() : injectedError(failure)
  }

  fail<Operation extends StorageOperation>(operation: Operation, options: FailOptions<Operation> = {}): void {
    assertOptions(options, FAIL_OPTIONS)
    const { kind = 'io', after = false } = options
    if (kind === 'conflict' && (after || !['commit', 'append'].includes(operation))) {
      throw invalid('kind `conflict` requires `commit` or `append` without `after`', 'kind')
    }
    this.#add(operation, { fault: 'failure', kind, after }, options)
  }

  failNext<Operation extends StorageOperation>(
    operation: Operation,
    options: Omit<FailOptions<Operation>, 'nth'> = {},
  ): void {
    this.fail(operation, { ...options, nth: 1 } as FailOptions<Operation>)
  }

  delay<Operation extends StorageOperation>(
    operation: Operation,
    duration: number | string,
    options: DelayOptions<Operation> = {},
  ): void {
    assertOptions(options, DELAY_OPTIONS)
    const { after = false } = options
    const delayMs = millisecondsIn(duration)
    this.#add(operation, { fault: 'delay', delayMs, after }, options)
  }

  tearReads(point: FaultPoint<StorageArguments<'read'>> = {}): void {
    assertOptions(point, FAULT_POINT)
    this.#add('read', { fault: 'torn read' }, point)
  }

  dropNotifications(point: NotificationPoint = {}): void {
    this.#checkUnreliable()
    this.#planNotification({ fault: 'dropped' }, point)
  }

  duplicateNotifications(point: NotificationPoint = {}): void {
    this.#planNotification({ fault: 'duplicated' }, point)
  }

  delayNotifications(duration: number | string, point: NotificationPoint = {}): void {
    this.#checkUnreliable()
    this.#planNotification({ fault: 'delay', delayMs: millisecondsIn(duration), after: false }, point)
  }

  #planNotification(fault: PlannedStorageFault, point: NotificationPoint): void {
    assertOptions(point, FAULT_POINT)
    this.#plan.add('notification', fault, point as FaultPoint<readonly unknown[]>)
  }

  #add<Operation extends StorageOperation>(
    operation: Operation,
    fault: PlannedStorageFault,
    point: FaultPoint<StorageArguments<Operation>>,
  ): void {
    if (!Object.hasOwn(STORAGE_OPERATIONS, operation)) {
      throw unknownMember(operation, STORAGE_OPERATIONS)
    }
    this.#plan.add(operation, fault, point as FaultPoint<readonly unknown[]>)
  }

  loseConnection(): void {
    if (!this.#isConnected) return
    this.#isConnected = false
    this.#plan.log({ fault: 'connection lost' })
    this.#break()
    for (const session of this.#sessions.keys()) session.disconnect()
  }

  restore(): void {
    if (this.#isConnected) return
    this.#isConnected = true
    this.#plan.log({ fault: 'connection restored' })
    for (const notifications of this.#sessions.values()) notifications.restored()
  }

  async crash(): Promise<void> {
    this.#plan.log({ fault: 'crash' })
    this.#break()
    const openings = Promise.allSettled([...this.#openings])
    await Promise.all([...this.#sessions.keys()].map((session) => session.crash()))
    await openings
  }

  heal(): void {
    this.#plan.heal()
    this.#holds.release()
    for (const session of this.#sessions.keys()) session.release()
    this.restore()
  }

  /** Fails calls of `open` in flight. */
  #break(): void {
    this.#breaks++
    this.#holds.release()
  }

  #checkUnreliable(): void {
    if (this.manifest.notifications !== 'reliable') return
    throw invalid('`reliable` notifications cannot be dropped or delayed')
  }
}

/** The notifications of one engine, with faults. */
class FaultyNotifications {
  readonly #context: StorageContext
  readonly #plan: StorageFaultPlan
  readonly #isConnected: () => boolean
  /** Logs that changed while there was no connection. */
  readonly #missed = new Set<string>()
  readonly #cancels = new Set<() => void>()
  #isClosed = false

  constructor(context: StorageContext, plan: StorageFaultPlan, isConnected: () => boolean) {
    this.#context = context
    this.#plan = plan
    this.#isConnected = isConnected
  }

  /** Forwards a notification of the storage. */
  changed(logId: string): void {
    if (!this.#isConnected()) {
      this.#missed.add(logId)
      return
    }
    const operation = 'notification'
    const { call, faults } = this.#plan.next(operation, [logId])
    const isPlanned = (wanted: string) => faults.some(({ fault }) => fault === wanted)
    if (isPlanned('dropped')) {
      this.#plan.log({ fault: 'dropped', operation, call })
      return
    }
    const delayMs = delayMsOf(faults, false)
    if (delayMs > 0) this.#plan.log({ fault: 'delay', operation, call, delayMs })
    this.#notify(logId, delayMs)
    if (!isPlanned('duplicated')) return
    this.#plan.log({ fault: 'duplicated', operation, call })
    this.#notify(logId, delayMs)
  }

  /** Notifies of the changes during a lost connection. */
  restored(): void {
    for (const logId of this.#missed) queueMicrotask(() => this.#notify(logId, 0))
    this.#missed.clear()
  }

  end(): void {
    this.#isClosed = true
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
  }

  #notify(logId: string, delayMs: number): void {
    if (this.#isClosed) return
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
