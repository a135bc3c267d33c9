import type {
  Storage,
  StorageContext,
  StorageManifest,
  StorageSession,
} from '../../../src/storage/contract.ts'
import { durationMs } from '../duration.ts'
import type { FaultPoint } from '../faults/fault-points.ts'
import { Holds } from '../faults/holds.ts'
import { FaultyNotifications } from './faulty-notifications.ts'
import { FaultySession } from './faulty-session.ts'
import { injectedError, noConnection } from './storage-errors.ts'
import { StorageFaultPlan } from './storage-fault-plan.ts'
import type {
  DelayOptions,
  FailOptions,
  StorageArguments,
  StorageFault,
  StorageOperation,
  StorageRates,
} from './storage-faults.ts'

export interface FaultyStorageOptions {
  /** Decides what {@link rates} make happen; 1 by default. The same seed and the same calls: the same faults. */
  readonly seed?: number
  /** Faults by chance, from the first call on; none by default. */
  readonly rates?: StorageRates
  /**
   * What the manifest promises of notifications. By default that of the storage, but `hint` where that is `reliable`: here they may get lost, and the engine has to know,
   * so that it looks by itself as well. With `reliable` they can be neither dropped nor delayed.
   */
  readonly notifications?: StorageManifest['notifications']
}

/**
 * A storage that fails when it is told to. Faults that are planned without `nth` last until {@link heal}. All times are those of the engine's clock.
 *
 * However it fails, it keeps what the storage contract promises: an append and a commit are made as a whole or not at all, appends of one log take effect in the order of the
 * calls, and what fails rejects with `StorageFailure` or `StorageConflict`, which say truly whether nothing was written.
 */
export interface FaultyStorage extends Storage {
  /** Calls of the operation fail: all from now on, or those that the options say. `RangeError` for options that make no sense. */
  fail<Operation extends StorageOperation>(operation: Operation, options?: FailOptions<Operation>): void
  /** The next call fails, or the next of which `when` holds. */
  failNext<Operation extends StorageOperation>(
    operation: Operation,
    options?: Omit<FailOptions<Operation>, 'nth'>,
  ): void
  /** Calls of the operation, or their answers, come later by milliseconds or by `'500ms'`, `'2s'`. What is held back when the storage closes goes on at once. */
  delay<Operation extends StorageOperation>(
    operation: Operation,
    duration: number | string,
    options?: DelayOptions<Operation>,
  ): void
  /** Reads give only the first of their blocks, and have to be asked for the rest. */
  tearReads(point?: FaultPoint<StorageArguments<'read'>>): void
  /** Nobody is told of changes from now on: engines find them by looking. */
  dropNotifications(): void
  /** Everybody is told of each change twice. */
  duplicateNotifications(): void
  delayNotifications(duration: number | string): void
  /** Calls in flight fail, done or not, and so does every call until {@link restore}. */
  loseConnection(): void
  /** There is a connection again; engines are told of the logs that changed meanwhile. */
  restore(): void
  /**
   * What the storage sees of the end of a process: calls in flight fail, done or not, and whoever has it open finds it closed. Resolves when it can be opened again. What
   * was acknowledged is there as far as the storage itself is durable.
   */
  crash(): Promise<void>
  /** No more faults: what was planned is forgotten, {@link rates} are none, what is held back goes on, the connection is there. */
  heal(): void
  /** Faults by chance from now on; `RangeError` for what are no rates. */
  rates: StorageRates
  /** What was injected, in its order: the latest 10,000. */
  readonly log: readonly StorageFault[]
}

/** Puts faults into any storage, see {@link FaultyStorage}. */
export function faultyStorage(storage: Storage, options: FaultyStorageOptions = {}): FaultyStorage {
  return new StorageWithFaults(storage, options)
}

class StorageWithFaults implements FaultyStorage {
  readonly manifest: StorageManifest
  readonly #inner: Storage
  readonly #plan: StorageFaultPlan
  /** Those that the storage below has not closed. */
  readonly #sessions = new Map<FaultySession, FaultyNotifications>()
  readonly #openings = new Set<Promise<unknown>>()
  /** Of openings. */
  readonly #holds = new Holds()
  #isConnected = true
  /** How often the connection was lost or the storage crashed. */
  #breaks = 0

  constructor(inner: Storage, { seed = 1, rates = {}, notifications }: FaultyStorageOptions) {
    const own = inner.manifest.notifications
    const promised = notifications ?? (own === 'reliable' ? 'hint' : own)
    this.#inner = inner
    this.manifest = { ...inner.manifest, notifications: promised }
    this.#plan = new StorageFaultPlan(seed)
    this.rates = rates
  }

  get rates(): StorageRates {
    return this.#plan.rates
  }

  set rates(rates: StorageRates) {
    if (rates.notification?.drop || rates.notification?.delay) this.#checkUnreliable()
    this.#plan.rates = rates
  }

  get log(): readonly StorageFault[] {
    return this.#plan.log.entries
  }

  open(context: StorageContext): Promise<StorageSession> {
    const opening = this.#open(context)
    const end = () => void this.#openings.delete(opening)
    this.#openings.add(opening)
    opening.then(end, end)
    return opening
  }

  async #open(context: StorageContext): Promise<StorageSession> {
    const injection = this.#plan.injectionOf('open', [])
    const { failure, holdMs, answerHoldMs } = injection
    const hold = this.#holds.begin(context.clock)
    const breaks = this.#breaks
    await hold(holdMs)
    if (!this.#isConnected || this.#breaks > breaks) throw noConnection()
    if (failure !== undefined && !failure.after) throw injectedError(injection, failure)
    const notifications = new FaultyNotifications(context, this.#plan, () => this.#isConnected)
    const inner = await this.#inner.open({
      ...context,
      onLogChanged: (logId) => notifications.changed(logId),
    })
    const session: FaultySession = new FaultySession(inner, {
      clock: context.clock,
      plan: this.#plan,
      refusal: () => (this.#isConnected ? undefined : noConnection()),
      onClose: () => notifications.end(),
      onClosed: () => void this.#sessions.delete(session),
    })
    this.#sessions.set(session, notifications)
    await hold(answerHoldMs)
    if (failure === undefined && this.#breaks === breaks) return session
    await session.close()
    throw failure === undefined ? noConnection() : injectedError(injection, failure)
  }

  fail<Operation extends StorageOperation>(operation: Operation, options: FailOptions<Operation> = {}): void {
    const { kind = 'io', after = false } = options
    if (kind === 'conflict' && (after || !['commit', 'append'].includes(operation))) {
      throw new RangeError('kind `conflict` is for commits and appends that are not made')
    }
    this.#plan.add(operation, { fault: 'failure', kind, after }, options as FaultPoint<readonly unknown[]>)
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
    const { after = false } = options
    const delayMs = durationMs(duration)
    this.#plan.add(operation, { fault: 'delay', delayMs, after }, options as FaultPoint<readonly unknown[]>)
  }

  tearReads(point: FaultPoint<StorageArguments<'read'>> = {}): void {
    this.#plan.add('read', { fault: 'torn read' }, point as FaultPoint<readonly unknown[]>)
  }

  dropNotifications(): void {
    this.#checkUnreliable()
    this.#plan.notifications.dropped = true
  }

  duplicateNotifications(): void {
    this.#plan.notifications.duplicated = true
  }

  delayNotifications(duration: number | string): void {
    this.#checkUnreliable()
    this.#plan.notifications.delayMs = durationMs(duration)
  }

  loseConnection(): void {
    if (!this.#isConnected) return
    this.#isConnected = false
    this.#plan.log.add({ fault: 'connection lost' })
    this.#break()
    for (const session of this.#sessions.keys()) session.sever()
  }

  restore(): void {
    if (this.#isConnected) return
    this.#isConnected = true
    this.#plan.log.add({ fault: 'connection restored' })
    for (const notifications of this.#sessions.values()) notifications.restored()
  }

  async crash(): Promise<void> {
    this.#plan.log.add({ fault: 'crash' })
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

  /** Openings that are under way come to nothing. */
  #break(): void {
    this.#breaks++
    this.#holds.release()
  }

  #checkUnreliable(): void {
    if (this.manifest.notifications !== 'reliable') return
    throw new RangeError(
      'the manifest promises `reliable` notifications, which lose nothing and are never late',
    )
  }
}
