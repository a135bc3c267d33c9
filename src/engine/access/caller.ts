import { type CallOptions, signalOf } from '../../api/call-options.ts'
import type { Resource } from '../../core/permission.ts'
import type { Operation } from '../../model/access.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { RetentionPolicy } from '../../model/config.ts'
import { assertText, type Members } from '../../model/validation.ts'
import { type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { LazyModule } from '../../runtime/lazy-module.ts'
import { SerialQueue } from '../../runtime/serial-queue.ts'
import type { Admission } from '../service/admission.ts'
import type { UsageRecorder } from '../service/usage.ts'
import { permissionDenied } from '../streams/errors.ts'
import type { StreamTarget, UsageConnection } from '../streams/target.ts'
import { OWNER_PERMIT, type Permit, type TokenPermit } from './permissions.ts'
import type { TokenWatch } from './token-watch.ts'
import type { TokenLookup, Tokens } from './tokens.ts'

export interface CallerContext {
  readonly tokens: LazyModule<Tokens>
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

interface Holder {
  readonly token: string | undefined
  /** Whether the token is looked up once a second instead of at each call. */
  readonly isCached: boolean
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
  readonly #holder: Holder | undefined
  #lookup: TokenLookup | undefined
  /** Keeps appends in order while tokens are looked up. */
  #appends: SerialQueue | undefined

  private constructor(
    context: CallerContext,
    connection: UsageConnection,
    defaultRetention: RetentionPolicy | undefined,
    holder?: Holder,
  ) {
    this.#context = context
    this.connection = connection
    this.defaultRetention = defaultRetention
    this.isOwner = holder === undefined
    this.#holder = holder
  }

  /** The owner of the engine, who keeps records forever by default. */
  static owner(context: CallerContext, connection: UsageConnection = {}): Caller {
    return new Caller(context, connection, 'infinite')
  }

  /** The holder of a token, valid or not, which is looked up at each call. */
  withToken(token: string): Caller {
    return new Caller(this.#context, {}, this.defaultRetention, { token, isCached: false })
  }

  /**
   * Resolves to the holder of a token who may perform one of the operations. It is looked up now, and again
   * after a second. A revocation by this engine takes effect at once.
   */
  async asHolder(
    token: string | undefined,
    operations: readonly Operation[],
    resource: Resource,
  ): Promise<Caller> {
    const holder = { token, isCached: true }
    const caller = new Caller(this.#context, this.connection, this.defaultRetention, holder)
    const permit = await caller.#lookUp()
    permit.authorize(operations, resource)
    return caller
  }

  /** The same caller on another connection, perhaps with another default retention. */
  onConnection(connection: UsageConnection, defaultRetention: RetentionPolicy | undefined): Caller {
    return new Caller(this.#context, connection, defaultRetention, this.#holder)
  }

  /** Throws `permission_denied` unless the caller is the owner. */
  assertOwner(): void {
    if (!this.isOwner) throw permissionDenied()
  }

  /** Synchronous for the owner. Throws or rejects with `authn` or `permission_denied`. */
  permit(operations: readonly Operation[], resource: Resource): Permit | Promise<Permit> {
    if (this.isOwner) return OWNER_PERMIT
    const permitted = (permit: TokenPermit): Permit => {
      permit.authorize(operations, resource)
      return permit
    }
    const permit = this.#current()
    return permit ? permitted(permit) : this.#lookUp().then(permitted)
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

  /**
   * Returns the permitted target of an append by a token's holder; undefined if it has to wait for a look-up
   * of the token, or for earlier appends that did. Throws `permission_denied`.
   */
  targetOf(target: StreamTarget, batch: AppendBatch): StreamTarget | undefined {
    return this.#appends ? undefined : this.#current()?.resolveAppend(target, batch)
  }

  /** Resolves to the permitted target of an append, in the order of the calls. */
  targetInTurn(target: StreamTarget, batch: AppendBatch): Promise<StreamTarget> {
    const resolve = async () => (this.#current() ?? (await this.#lookUp())).resolveAppend(target, batch)
    const resolving = resolve()
    // Its rejection is handled when its turn comes.
    resolving.catch(() => {})
    this.#appends ??= new SerialQueue()
    return this.#appends.run(() => resolving)
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
    // A permit was looked up, so the code of tokens is loaded.
    const watching = this.#context.tokens.part!.watch(permit.identity!)
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
    const { identity } = this.#current() ?? (await this.#lookUp())
    return this.#context.tokens.part!.watch(identity)
  }

  /** The permit, if the token was looked up lately. */
  #current(): TokenPermit | undefined {
    const lookup = this.#lookup
    return lookup && this.#context.tokens.part!.isCurrent(lookup) ? lookup.permit : undefined
  }

  async #lookUp(): Promise<TokenPermit> {
    const tokens = this.#context.tokens.part ?? (await this.#context.tokens.load())
    const { token, isCached } = this.#holder!
    const lookup = await tokens.lookUp(token)
    if (isCached) this.#lookup = lookup
    return lookup.permit
  }
}
