import { type CallOptions, signalOf } from '../../api/call-options.ts'
import type { Resource } from '../../core/permission.ts'
import { isExpired } from '../../core/retention.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { RetentionPolicy } from '../../model/config.ts'
import type { Operation } from '../../model/operations.ts'
import { assertText, type Members } from '../../model/validation.ts'
import { type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LazyModule } from '../../runtime/lazy-module.ts'
import { isPromise } from '../../runtime/maybe-promise.ts'
import { SerialQueue } from '../../runtime/serial-queue.ts'
import type { Admission } from '../service/admission.ts'
import { permissionDenied } from '../service/errors.ts'
import { type HolderPermit, OWNER_PERMIT, type Permit } from '../service/permit.ts'
import type { StreamTarget, UsageConnection } from '../service/stream-target.ts'
import type { TokenAccess, TokenWatch } from '../service/token-access.ts'
import type { UsageRecorder } from '../service/usage.ts'

/** How long a caller with `isCached` acts on one look-up of its token, in milliseconds. */
const LOOKUP_VALID_MS = 1_000

export interface CallerContext {
  readonly tokens: LazyModule<TokenAccess>
  readonly usage: UsageRecorder
  readonly clock: Clock
  readonly closing: SharedSignal
  readonly admission: Admission
}

/** A call that performs one of several operations, which its result tells. */
export interface AlternativeOperations<Result> {
  readonly anyOf: readonly Operation[]
  /** The operation to count. */
  readonly counted: (result: Result) => Operation
}

/** A target whose use is permitted, and what ends it. */
export interface OpenTarget {
  readonly permit: Permit
  readonly target: StreamTarget
  readonly watch: TokenWatch | undefined
}

/**
 * The user of the API: the owner of the engine, or the holder of an access token. Every call passes through
 * a caller, which authorizes it and counts it. For the owner this is synchronous.
 */
export class Caller {
  readonly connection: UsageConnection
  /** The retention of basins and streams that it creates without one. Undefined: the protocol's. */
  readonly defaultRetention: RetentionPolicy | undefined
  readonly isOwner: boolean
  readonly #context: CallerContext
  readonly #token: string | undefined
  readonly #isCached: boolean
  #lookup: { readonly permit: HolderPermit; readonly at: number; readonly revision: number } | undefined
  /** Keeps appends in order while tokens are looked up. */
  #appends: SerialQueue | undefined

  private constructor(
    context: CallerContext,
    connection: UsageConnection,
    defaultRetention: RetentionPolicy | undefined,
    holder: { readonly token: string | undefined; readonly isCached: boolean } | undefined,
  ) {
    this.#context = context
    this.connection = connection
    this.defaultRetention = defaultRetention
    this.isOwner = holder === undefined
    this.#token = holder?.token
    this.#isCached = holder?.isCached ?? false
  }

  /** The owner of the engine, who keeps records forever by default. */
  static owner(context: CallerContext, connection: UsageConnection = {}): Caller {
    return new Caller(context, connection, 'infinite', undefined)
  }

  /**
   * The holder of a token, valid or not. It is looked up at each call, or with `isCached` once a second. A
   * revocation by this engine takes effect at once in either case.
   */
  withToken(token: string | undefined, isCached: boolean, connection = this.connection): Caller {
    return new Caller(this.#context, connection, this.defaultRetention, { token, isCached })
  }

  /** The same caller on another connection, perhaps with another default retention. */
  onConnection(connection: UsageConnection, defaultRetention: RetentionPolicy | undefined): Caller {
    const holder = this.isOwner ? undefined : { token: this.#token, isCached: this.#isCached }
    return new Caller(this.#context, connection, defaultRetention, holder)
  }

  /** Throws `permission_denied` unless the caller is the owner. */
  assertOwner(): void {
    if (!this.isOwner) throw permissionDenied()
  }

  /** Synchronous for the owner. Throws or rejects with `authn` or `permission_denied`. */
  permit(operations: readonly Operation[], resource: Resource): Permit | Promise<Permit> {
    if (this.isOwner) return OWNER_PERMIT
    const permitted = (permit: HolderPermit): Permit => {
      permit.authorize(operations, resource)
      return permit
    }
    const permit = this.#authenticate()
    return permit instanceof Promise ? permit.then(permitted) : permitted(permit)
  }

  /**
   * Validates the names and the options of a call, authorizes it, makes it and counts it. Of several
   * operations, at least one must be permitted here, and `call` authorizes the one that it performs. Rejects
   * with the reason of the signal as soon as that aborts.
   */
  async run<Result>(
    operation: Operation | AlternativeOperations<Result>,
    resource: Resource,
    options: CallOptions | undefined,
    call: (permit: Permit) => Promise<Result>,
    members?: Members,
  ): Promise<Result> {
    for (const [field, name] of Object.entries(resource)) assertText(name, field)
    const signal = signalOf(options, members)
    signal?.throwIfAborted()
    const checkedCall = (permitted: Permit) => {
      // Nothing happens on behalf of a caller that gave up while its token was looked up.
      signal?.throwIfAborted()
      return call(permitted)
    }
    const calling = this.track(() => {
      const permit = this.permit(typeof operation === 'string' ? [operation] : operation.anyOf, resource)
      return permit instanceof Promise ? permit.then(checkedCall) : call(permit)
    })
    const result = await unlessAborted(signal, calling)
    const counted = typeof operation === 'string' ? operation : operation.counted(result)
    this.#context.usage.operation(counted, resource.basin)
    return result
  }

  /** Makes a call that closing the engine waits for. Throws `closed` once the engine is closing. */
  track<Result>(call: () => Promise<Result>): Promise<Result> {
    this.#context.closing.throwIfAborted()
    return this.#context.admission.track(call())
  }

  /** Calls `append` with the permitted target of a token's holder, in the order of the calls. */
  appendAsHolder<Result>(
    target: StreamTarget,
    batch: AppendBatch,
    signal: AbortSignal | undefined,
    append: (target: StreamTarget) => Promise<Result>,
  ): Promise<Result> {
    const resolve = (permit: Permit): StreamTarget => {
      const resolved = permit.resolveTarget(target)
      permit.authorizeCommands(target.ref, batch)
      return resolved
    }
    const permit = this.permit(['append'], target.ref)
    // Without a look-up, and with no earlier one under way, the append keeps its place.
    if (this.#appends === undefined && !isPromise(permit)) return append(resolve(permit))
    const resolving = Promise.resolve(permit).then(resolve)
    // Its rejection is handled when its turn comes.
    resolving.catch(() => {})
    this.#appends ??= new SerialQueue()
    return this.#appends
      .run(() => resolving)
      .then((resolved) => {
        signal?.throwIfAborted()
        return append(resolved)
      })
  }

  /** Opens something that ends with the caller's token. */
  open<Result>(
    operation: Operation,
    target: StreamTarget,
    signal: AbortSignal | undefined,
    open: (opened: OpenTarget) => Promise<Result>,
  ): Promise<Result> {
    if (this.isOwner) return open({ permit: OWNER_PERMIT, target, watch: undefined })
    return this.#openAsHolder(operation, target, signal, open)
  }

  async #openAsHolder<Result>(
    operation: Operation,
    target: StreamTarget,
    signal: AbortSignal | undefined,
    open: (opened: OpenTarget) => Promise<Result>,
  ): Promise<Result> {
    signal?.throwIfAborted()
    const permitting = Promise.resolve(this.permit([operation], target.ref))
    const permit = await unlessAborted(signal, permitting)
    const resolved = permit.resolveTarget(target)
    const tokens = await unlessAborted(signal, this.#tokens())
    const watching = tokens.watch(permit.identity!)
    const watch = await unlessAborted(signal, watching, (late) => late.release())
    try {
      return await open({ permit, target: resolved, watch })
    } catch (error) {
      watch.release()
      throw error
    }
  }

  /** Watches the token; undefined for the owner. Rejects with `authn` if it has ended. */
  async watch(): Promise<TokenWatch | undefined> {
    if (this.isOwner) return undefined
    const { identity } = await this.#authenticate()
    return (await this.#tokens()).watch(identity)
  }

  #authenticate(): HolderPermit | Promise<HolderPermit> {
    const lookup = this.#lookup
    const { clock, tokens } = this.#context
    const isCurrent =
      lookup !== undefined &&
      lookup.revision === tokens.part?.revision &&
      Math.abs(clock.now() - lookup.at) < LOOKUP_VALID_MS &&
      !isExpired(lookup.permit.identity.grant.expiresAt, clock.now())
    return isCurrent ? lookup.permit : this.#lookUp()
  }

  async #lookUp(): Promise<HolderPermit> {
    const tokens = await this.#tokens()
    const at = this.#context.clock.now()
    const { revision } = tokens
    const permit = await tokens.authenticate(this.#token)
    if (this.#isCached) this.#lookup = { permit, at, revision }
    return permit
  }

  #tokens(): Promise<TokenAccess> {
    return this.#context.tokens.load()
  }
}
