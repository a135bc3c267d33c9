import { type CallOptions, signalOf } from '../../api/call-options.ts'
import {
  covers,
  OWNER,
  permits,
  prefixedName,
  prefixedQuery,
  type Resource,
  scopedQuery,
  shownName,
  withinSet,
} from '../../core/permission.ts'
import { OPERATIONS, type Operation, type ResourceKind } from '../../model/access.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { RetentionPolicy } from '../../model/config.ts'
import { assertValid, invalid } from '../../model/errors.ts'
import { EMPTY_PAGE, type ListQuery, type Page } from '../../model/info.ts'
import { basinNameProblem, type StreamRef, streamNameProblem } from '../../model/names.ts'
import { assertText, type Members } from '../../model/validation.ts'
import { unlessAborted } from '../../runtime/abort.ts'
import { andThen, type MaybePromise } from '../../runtime/maybe-promise.ts'
import { SerialQueue } from '../../runtime/queues.ts'
import type { EngineContext } from '../context.ts'
import { permissionDenied } from '../errors.ts'
import type { Admission } from '../service/admission.ts'
import type { StreamTarget } from '../streams/table.ts'
import type { UsageConnection } from '../usage.ts'
import type { Identity, TokenLookup, Tokens, TokenWatch } from './tokens.ts'

/** What a caller may do (docs/protocol.md "Permissions"), and its names of streams. */
export class Permit {
  /** The identity behind the token; undefined for the owner of the engine. */
  readonly identity: Identity | undefined

  constructor(identity: Identity | undefined) {
    this.identity = identity
  }

  get #grant() {
    return this.identity?.grant ?? OWNER
  }

  /** Throws `permission_denied` unless one of the operations is permitted on what the caller names so. */
  authorize(operations: readonly Operation[], { basin, stream, tokenId }: Resource): void {
    const grant = this.#grant
    const named = { basin, stream: stream === undefined ? undefined : grant.streamPrefix + stream, tokenId }
    let isPermitted = false
    for (const operation of operations) {
      if (!OPERATIONS.includes(operation)) throw invalid(`unknown operation \`${operation}\``, 'operation')
      isPermitted ||= permits(grant, operation, named)
    }
    if (!isPermitted) {
      throw permissionDenied(`the access token does not permit ${operations.join(' or ')}`)
    }
  }

  /** Throws `permission_denied` unless the operation of each command in the batch is permitted. */
  authorizeCommands(ref: StreamRef, { records }: AppendBatch): void {
    if (this.identity === undefined) return
    for (const { command } of records) {
      // Closing takes no permission beyond that to append.
      if (command && command.kind !== 'close') this.authorize([command.kind], ref)
    }
  }

  /**
   * Returns the stream that the caller means. Throws `invalid` for a name that breaks the rules, which could
   * address another stream's document, and for one that is too long together with the token's prefix
   * (docs/protocol.md "Automatic prefixes").
   */
  resolveRef({ basin, stream }: StreamRef): StreamRef {
    assertValid(basinNameProblem(basin), 'basin')
    assertValid(streamNameProblem(stream), 'stream')
    const grant = this.#grant
    if (grant.streamPrefix === '') return { basin, stream }
    return { basin, stream: prefixedName(grant, stream), shownAs: stream }
  }

  /** Returns the target with the permissions applied. Throws `permission_denied`, and `invalid` for names. */
  resolveTarget(target: StreamTarget): StreamTarget {
    if (this.identity === undefined) return target
    const { always, config } = target.creation
    if (always) {
      this.authorize(['create-basin'], { basin: target.ref.basin })
      this.authorize(['create-stream'], target.ref)
    }
    const ref = this.resolveRef(target.ref)
    // A basin's configuration grants streams with that configuration, not with one of the caller's choice.
    const isConfigDenied = config !== undefined && !permits(this.#grant, 'create-stream', ref)
    return {
      ...target,
      ref,
      creation: { ...target.creation, ...(isConfigDenied && { config: undefined, isConfigDenied }) },
    }
  }

  /** Authorizes an append. Returns the target with the permissions applied. Throws as the others do. */
  resolveAppend(target: StreamTarget, batch: AppendBatch): StreamTarget {
    this.authorize(['append'], target.ref)
    const resolved = this.resolveTarget(target)
    this.authorizeCommands(target.ref, batch)
    return resolved
  }

  shownName(stream: string): string {
    return shownName(this.#grant, stream)
  }

  /** Returns the name by which the caller knows a stream; undefined if it may not see the stream. */
  visibleName({ basin, stream }: StreamRef): string | undefined {
    if (!this.covers('basins', basin) || !this.covers('streams', stream)) return undefined
    // A stream named as the prefix has no name for the caller.
    return this.shownName(stream) || undefined
  }

  covers(kind: ResourceKind, name: string): boolean {
    return covers(this.#grant.scope[kind], name)
  }

  /**
   * Lists the resources that the caller may see, by their names in the storage. Resolves to
   * {@link EMPTY_PAGE} when it may see none of those queried.
   */
  async list<Item extends { readonly name: string } | { readonly id: string }>(
    kind: ResourceKind,
    query: ListQuery,
    list: (query: ListQuery) => Promise<Page<Item>>,
  ): Promise<Page<Item>> {
    const set = this.#grant.scope[kind]
    const scoped = scopedQuery(set, kind === 'streams' ? prefixedQuery(this.#grant, query) : query)
    if (scoped === undefined) return EMPTY_PAGE
    return withinSet(set, await list(scoped), (item) => ('id' in item ? item.id : item.name))
  }
}

const OWNER_PERMIT = new Permit(undefined)

export interface CallerContext extends EngineContext {
  readonly tokens: Tokens
  readonly admission: Admission
}

/** A call that performs one of several operations, which its result tells. */
export interface AlternativeOperations<Result> {
  readonly anyOf: readonly Operation[]
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
  static owner(context: CallerContext): Caller {
    return new Caller(context, {}, 'infinite')
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
    await caller.#authorized(operations, resource)
    return caller
  }

  /** The same caller on another connection, perhaps with another default retention. */
  onConnection(connection: UsageConnection, defaultRetention: RetentionPolicy | undefined): Caller {
    return new Caller(this.#context, connection, defaultRetention, this.#holder)
  }

  /** Resolves to the items whose streams the caller may see, with its names of them. */
  async visible<Item extends StreamRef>(items: readonly Item[]): Promise<Item[]> {
    const permit = await this.#permit()
    return items.flatMap((item) => {
      const stream = permit.visibleName(item)
      return stream === undefined ? [] : [{ ...item, stream }]
    })
  }

  assertOwner(): void {
    if (!this.isOwner) throw permissionDenied()
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
    const operations = typeof operation === 'string' ? [operation] : operation.anyOf
    const calling = this.track(async () =>
      andThen(this.#authorized(operations, resource), (permit) => {
        // Nothing happens on behalf of a caller that gave up while its token was looked up.
        signal?.throwIfAborted()
        return call(permit)
      }),
    )
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

  /** Resolves to the permitted target of an append, in the order of the calls. */
  appendTarget(target: StreamTarget, batch: AppendBatch): Promise<StreamTarget> {
    const resolve = async () => (await this.#permit()).resolveAppend(target, batch)
    const resolving = resolve()
    // Its rejection is handled when its turn comes.
    resolving.catch(() => {})
    this.#appends ??= new SerialQueue()
    return this.#appends.run(() => resolving)
  }

  /** Opens something that ends with the caller's token. */
  async open<Result>(
    operation: Operation,
    target: StreamTarget,
    signal: AbortSignal | undefined,
    open: (opened: OpenTarget) => Promise<Result>,
  ): Promise<Result> {
    if (this.isOwner) return open({ permit: OWNER_PERMIT, target, watch: undefined })
    signal?.throwIfAborted()
    const authorized = async () => this.#authorized([operation], target.ref)
    const permit = await unlessAborted(signal, authorized())
    const resolved = permit.resolveTarget(target)
    const watching = this.#context.tokens.watch(permit.identity!)
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
    const { identity } = await this.#permit()
    return identity && this.#context.tokens.watch(identity)
  }

  /** The permit for one of the operations. Fails with `authn` or `permission_denied`. */
  #authorized(operations: readonly Operation[], resource: Resource): MaybePromise<Permit> {
    return andThen(this.#permit(), (permit) => {
      permit.authorize(operations, resource)
      return permit
    })
  }

  /** The permit of the owner, or of a token that was looked up lately or is looked up now. */
  #permit(): MaybePromise<Permit> {
    if (this.#holder === undefined) return OWNER_PERMIT
    const { token, isCached } = this.#holder
    const { tokens } = this.#context
    if (this.#lookup && tokens.isCurrent(this.#lookup)) return new Permit(this.#lookup.identity)
    return tokens.lookUp(token).then((lookup) => {
      if (isCached) this.#lookup = lookup
      return new Permit(lookup.identity)
    })
  }
}
