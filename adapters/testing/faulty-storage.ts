import { invalid } from '../../src/model/errors.ts'
import { assertOptions, hasMethod, type MembersOf, oneOf, unknownMember } from '../../src/model/validation.ts'
import type { Storage, StorageContext, StorageManifest, StorageSession } from '../../src/storage/contract.ts'
import {
  FaultySession,
  type InjectedKind,
  injectedError,
  noConnection,
  STORAGE_OPERATIONS,
  type StorageArguments,
  type StorageFault,
  type StorageFaults,
  type StorageOperation,
} from './faulty-session.ts'
import { FAULT_POINT, FaultPlan, type FaultPoint, Holds } from './planned-faults.ts'
import { millisecondsIn } from './virtual-clock.ts'

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

/** Options of `faultyStorage`. */
export interface FaultyStorageOptions {
  /**
   * The guarantee of notifications in the manifest. By default that of the storage, but `hint` instead of
   * `reliable`, because notifications may be lost here, and the engine must poll. With `reliable` they cannot
   * be dropped.
   */
  readonly notifications?: StorageManifest['notifications'] | undefined
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
const FAIL_OPTIONS: MembersOf<FailOptions<'read'>> = { ...DELAY_OPTIONS, kind: oneOf(INJECTED_KINDS) }
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
  return new FaultyStorage(storage, options)
}

/**
 * A storage with injected faults. Faults without `nth` last until {@link heal}. A call is affected by at most
 * one fault, the first that was planned, and by every delay. Delays use the engine's clock.
 *
 * The storage contract holds in spite of faults: appends and commits are atomic, appends to one log take
 * effect in the order of the calls, and failures reject with `StorageFailure` or `StorageConflict`, which
 * state correctly whether nothing was written.
 */
export class FaultyStorage implements Storage {
  /** The guarantees of the storage, with the notifications of the options. */
  readonly manifest: StorageManifest
  readonly #inner: Storage
  readonly #faults: StorageFaults = { plan: new FaultPlan(), isConnected: true, sessions: new Set() }
  readonly #openings = new Set<Promise<unknown>>()
  /** Delays of `open`. */
  readonly #holds = new Holds()
  /** The number of lost connections and crashes. */
  #breaks = 0

  /** @internal */
  constructor(inner: Storage, { notifications }: FaultyStorageOptions) {
    const own = inner.manifest.notifications
    const promised = notifications ?? (own === 'reliable' ? 'hint' : own)
    this.#inner = inner
    this.manifest = { ...inner.manifest, notifications: promised }
  }

  /** The latest 10,000 injected faults. */
  get log(): readonly StorageFault[] {
    return this.#faults.plan.logged
  }

  /** Opens the storage, as an engine does. */
  open(context: StorageContext): Promise<StorageSession> {
    const opening = this.#open(context)
    const end = () => void this.#openings.delete(opening)
    this.#openings.add(opening)
    opening.then(end, end)
    return opening
  }

  /**
   * Makes calls of the operation fail: all from now on, or those selected by the options. Throws `invalid`
   * for invalid options.
   */
  fail<Operation extends StorageOperation>(operation: Operation, options: FailOptions<Operation> = {}): void {
    assertOptions(options, FAIL_OPTIONS)
    const { kind = 'io', after = false } = options
    if (kind === 'conflict' && (after || !['commit', 'append'].includes(operation))) {
      throw invalid('kind `conflict` requires `commit` or `append` without `after`', 'kind')
    }
    assertOperation(operation)
    this.#faults.plan.add(operation, { fault: 'failure', kind, after }, options)
  }

  /** Makes the next call fail, or the next that matches `when`. */
  failNext<Operation extends StorageOperation>(
    operation: Operation,
    options: Omit<FailOptions<Operation>, 'nth'> = {},
  ): void {
    this.fail(operation, { ...options, nth: 1 } as FailOptions<Operation>)
  }

  /**
   * Delays calls of the operation, or their results, by milliseconds or by `'500ms'`, `'2s'`. Closing the
   * storage releases them.
   */
  delay<Operation extends StorageOperation>(
    operation: Operation,
    duration: number | string,
    options: DelayOptions<Operation> = {},
  ): void {
    assertOptions(options, DELAY_OPTIONS)
    assertOperation(operation)
    const { after = false } = options
    this.#faults.plan.add(operation, { fault: 'delay', delayMs: millisecondsIn(duration), after }, options)
  }

  /** Makes reads return only their first block. */
  tearReads(point: FaultPoint<StorageArguments<'read'>> = {}): void {
    assertOptions(point, FAULT_POINT)
    this.#faults.plan.add('read', { fault: 'torn read' }, point)
  }

  /**
   * Drops notifications: engines discover changes by polling. Throws `invalid` for `reliable`
   * notifications.
   */
  dropNotifications(point: FaultPoint<[logId: string]> = {}): void {
    if (this.manifest.notifications === 'reliable') {
      throw invalid('`reliable` notifications cannot be dropped')
    }
    assertOptions(point, FAULT_POINT)
    this.#faults.plan.add('notification', { fault: 'dropped' }, point)
  }

  /** Fails calls in flight, whether they took effect or not, and every call until {@link restore}. */
  loseConnection(): void {
    const { plan, isConnected, sessions } = this.#faults
    if (!isConnected) return
    this.#faults.isConnected = false
    plan.log({ fault: 'connection lost' })
    this.#break()
    for (const session of sessions) session.disconnect()
  }

  /** Ends {@link loseConnection}, and notifies engines of the logs that changed meanwhile. */
  restore(): void {
    const { plan, isConnected, sessions } = this.#faults
    if (isConnected) return
    this.#faults.isConnected = true
    plan.log({ fault: 'connection restored' })
    for (const session of sessions) session.reconnected()
  }

  /**
   * Simulates a crash of the process: calls in flight fail, whether they took effect or not, and open
   * sessions are closed. Resolves when the storage can be opened again. Acknowledged writes survive if the
   * storage is durable.
   */
  async crash(): Promise<void> {
    const { plan, sessions } = this.#faults
    plan.log({ fault: 'crash' })
    this.#break()
    const openings = Promise.allSettled([...this.#openings])
    await Promise.all([...sessions].map((session) => session.crash()))
    await openings
  }

  /** Ends all faults, delays and a lost connection. */
  heal(): void {
    const { plan, sessions } = this.#faults
    plan.heal()
    this.#holds.release()
    for (const session of sessions) session.release()
    this.restore()
  }

  async #open(context: StorageContext): Promise<StorageSession> {
    const { plan, sessions } = this.#faults
    const { call, fault, delayMs, resultDelayMs } = plan.next('open', [], { operation: 'open' })
    const failure = fault?.fault === 'failure' ? fault : undefined
    const breaks = this.#breaks
    const hold = this.#holds.begin(context.clock)
    await hold(delayMs)
    if (!this.#faults.isConnected || this.#breaks > breaks) throw noConnection()
    if (failure?.after === false) throw injectedError('open', call, failure)
    let session: FaultySession | undefined
    const onLogChanged = (logId: string) => session?.changed(logId)
    session = new FaultySession(await this.#inner.open({ ...context, onLogChanged }), context, this.#faults)
    sessions.add(session)
    await hold(resultDelayMs)
    if (failure === undefined && this.#breaks === breaks) return session
    await session.close()
    throw failure === undefined ? noConnection() : injectedError('open', call, failure)
  }

  /** Fails calls of `open` in flight. */
  #break(): void {
    this.#breaks++
    this.#holds.release()
  }
}

function assertOperation(operation: string): void {
  if (!Object.hasOwn(STORAGE_OPERATIONS, operation)) throw unknownMember(operation, STORAGE_OPERATIONS)
}
