import type { EncryptionKey } from '../../model/encryption-key.ts'
import type { StreamRef } from '../../model/names.ts'
import type { Head } from '../../storage/contract.ts'
import { type StreamDocument, streamKey } from '../../storage/documents.ts'
import { emptyHead } from '../../storage/heads.ts'
import type { EngineContext } from '../context.ts'
import { closedError, deletedError, streamNotFound } from '../errors.ts'
import { ChangeWatch, type ChangeWatchOptions } from '../log/change-watch.ts'
import { type StreamLease, StreamLog, type StreamLogOptions } from '../log/stream-log.ts'
import type { UsageConnection } from '../usage.ts'
import type { CreationPolicy } from './create.ts'

/** How often a name is resolved for one call, while others delete and create the stream again. */
const ATTEMPTS_MAX = 10
/** How many streams are considered for eviction when one is added, so that adding one never takes long. */
const SCAN_MAX = 16

export type Purpose = 'append' | 'read'

/** A stream, and how a caller uses its records. */
export interface StreamTarget {
  readonly ref: StreamRef
  readonly creation: CreationPolicy
  /** The key for streams with a cipher; plain streams ignore it. */
  readonly key: EncryptionKey | undefined
  readonly connection: UsageConnection
  readonly identity?: ExpectedIdentity | undefined
}

/** Tells a stream from those that had its name before, or will have it. */
export interface ExpectedIdentity {
  /** The identity that the stream must have; another stream of the name is not found. Undefined for any. */
  readonly id: string | undefined
  /** Receives the identity of the stream that is used, whatever becomes of the call. */
  readonly onResolved: (id: string) => void
}

/** Throws `stream_not_found` if the stream that has the name of the target is another one. */
export function assertIsTarget(target: Pick<StreamTarget, 'ref' | 'identity'>, logId: string): void {
  const { ref, identity } = target
  if (identity === undefined) return
  if (identity.id !== undefined && identity.id !== logId) throw streamNotFound(ref)
  identity.onResolved(logId)
}

/** A stream to open by name, and the policy if it does not exist. */
type OpenRequest = Pick<StreamTarget, 'ref' | 'creation' | 'identity'>

export interface Attempts {
  left: number
}

export const newAttempts = (): Attempts => ({ left: ATTEMPTS_MAX })

export interface StreamTableOptions
  extends EngineContext,
    Omit<StreamLogOptions, 'onFollow' | 'onDeleted' | keyof EngineContext>,
    Omit<ChangeWatchOptions, keyof EngineContext> {
  /** Whether a stream that can expire may have done so: its document is then loaded again. */
  readonly isOverdue: (log: StreamLog) => boolean
  /** Creates a missing stream if the policy allows it. Undefined if it exists by now. */
  readonly create: (
    ref: StreamRef,
    purpose: Purpose,
    policy: CreationPolicy,
  ) => Promise<StreamDocument | undefined>
}

/** How a stream was changed by this engine; `uncertain` when the change failed but may have happened. */
export type LogChange = 'deleted' | 'reconfigured' | 'uncertain'

/**
 * The open streams of an engine: those in use and those used recently, one object for each log. A stream that
 * is not in the table is read from the storage, or created where that is allowed.
 */
export class StreamTable {
  readonly #options: StreamTableOptions
  readonly #logOptions: StreamLogOptions
  readonly #watch: ChangeWatch
  readonly #byName = new Map<string, StreamLog>()
  readonly #byId = new Map<string, StreamLog>()
  /** The look-ups of names that are under way, by purpose and name. */
  readonly #lookUps = new Map<string, LookUp>()
  /** Continues where the last scan for eviction ended. */
  #hand: Iterator<StreamLog> | undefined

  constructor(options: StreamTableOptions) {
    this.#options = options
    this.#watch = new ChangeWatch(options, () => this.#byId.values())
    this.#logOptions = {
      ...options,
      onFollow: () => this.#watch.poll(),
      onDeleted: (log) => this.#remove(log),
    }
  }

  /**
   * Returns the stream if it is open and no call waits for a name, which a later call must not overtake. On a
   * shared storage another engine may have deleted it, which using it reveals.
   */
  get({ basin, stream }: StreamRef): StreamLog | undefined {
    return this.#lookUps.size === 0 ? this.#find(streamKey(basin, stream)) : undefined
  }

  /**
   * Passes the stream to `use`: synchronously if it is open. Calls for one name and purpose share a look-up
   * and are served in the order in which they were made, so that appends keep their order. Closing the engine
   * fails reads, and waits for appends. Rejects with `stream_deletion_pending` when the attempts are used up.
   */
  async open<Result>(
    request: OpenRequest,
    purpose: Purpose,
    use: (log: StreamLog) => Result,
    attempts: Attempts = newAttempts(),
  ): Promise<Result> {
    const { ref, creation } = request
    const name = streamKey(ref.basin, ref.stream)
    // Other look-ups may wait for a creation, which may wait for this one.
    const key = `${purpose}\0${creation.never ? 'never' : ''}\0${name}`
    // A wait for the look-ups of others is no attempt: as many may fail as calls came earlier.
    for (let hasWaited = false; attempts.left > 0; hasWaited = true) {
      this.#assertOpen(purpose)
      let lookUp = this.#lookUps.get(key)
      const isOwn = lookUp === undefined
      if (lookUp === undefined) {
        const log = this.#find(name)
        if (log !== undefined) return use(log)
        attempts.left--
        const begun = { request, name, isStale: false }
        lookUp = Object.assign(begun, { lease: this.#lookUp(request, purpose, begun) })
        this.#lookUps.set(key, lookUp)
      }
      let lease: StreamLease | undefined
      try {
        lease = await lookUp.lease
      } catch (error) {
        // Why a storage that is being closed failed does not matter.
        this.#assertOpen(purpose)
        // A look-up that began before this call may have missed what a later one finds.
        if (isOwn || (hasWaited && isSameRequest(request, lookUp.request))) throw error
      } finally {
        if (isOwn) this.#lookUps.delete(key)
      }
      if (lease === undefined) continue
      // All who wait continue in this turn, in the order of the calls: nothing is evicted in between.
      if (isOwn) lease.release()
      this.#assertOpen(purpose)
      return use(lease.log)
    }
    throw deletedError()
  }

  /**
   * Leases the stream, with the head that the storage has now: it stays the one object for its log until
   * `release` is called. Rejects with `stream_not_found` if it is not the expected one.
   */
  async lease(request: OpenRequest, purpose: Purpose): Promise<StreamLease> {
    const attempts = newAttempts()
    for (;;) {
      const lease = await this.open(request, purpose, (log) => log.lease(), attempts)
      try {
        assertIsTarget(request, lease.log.document.logId)
        if (await lease.log.refresh()) return lease
      } catch (error) {
        lease.release()
        throw error
      }
      lease.release()
      attempts.left--
    }
  }

  /** Makes a log that nothing finds, for the stream that is being created with it. */
  detached(document: StreamDocument, head: Head): StreamLog {
    const ignore = () => {}
    const options = { ...this.#logOptions, onDeleted: ignore, onTrim: ignore, onLost: ignore }
    return new StreamLog(options, document, head, this.#options.ciphers.codecFor(document))
  }

  all(): Iterable<StreamLog> {
    return this.#byId.values()
  }

  /** Reports a change that this engine made or tried to make. */
  changed(ref: StreamRef, logId: string, change: LogChange): void {
    const name = streamKey(ref.basin, ref.stream)
    for (const lookUp of this.#lookUps.values()) if (lookUp.name === name) lookUp.isStale = true
    const log = this.#byId.get(logId)
    if (change === 'deleted') log?.markDeleted(true)
    else if (log) {
      log.invalidate()
      log.markStale()
      if (change === 'uncertain') this.#watch.sync(log)
    }
  }

  /** Reports that another engine may have changed a log. */
  hint(logId: string): void {
    const log = this.#byId.get(logId)
    if (log) this.#watch.sync(log)
  }

  /** Reports that the storage may have lost appends: what is in use is compared, the rest is forgotten. */
  historyChanged(): void {
    for (const lookUp of this.#lookUps.values()) lookUp.isStale = true
    for (const log of [...this.#byId.values()]) {
      if (log.isIdle) this.#remove(log)
      else {
        log.markStale()
        this.#watch.sync(log)
      }
    }
  }

  /** Wakes every follower, waits until `drained` resolves, which ends all appends, and empties the table. */
  async close(drained: Promise<unknown>): Promise<void> {
    this.#watch.close()
    for (const log of this.#byId.values()) log.wake()
    await drained
    this.#byName.clear()
    this.#byId.clear()
  }

  #assertOpen(purpose: Purpose): void {
    if (purpose === 'read' && this.#options.closing.aborted) throw closedError()
  }

  #find(name: string): StreamLog | undefined {
    const log = this.#byName.get(name)
    if (!log || log.isDeleted) return undefined
    if (log.document.expiry !== undefined && this.#options.isOverdue(log)) return undefined
    log.wasUsed = true
    return log
  }

  /**
   * Reads a stream from the storage, or creates it. Resolves to undefined if it was changed meanwhile. Leased
   * at once: otherwise it might be evicted, and read a second time, before its first use.
   */
  async #lookUp(
    { ref, creation }: OpenRequest,
    purpose: Purpose,
    lookUp: Pick<LookUp, 'isStale'>,
  ): Promise<StreamLease | undefined> {
    const { session, loadDocument, create } = this.#options
    const document = await loadDocument(ref.basin, ref.stream)
    if (document !== undefined) {
      const head = await session.head(document.logId)
      const isCurrent = head !== undefined && head.epoch === document.epoch && !lookUp.isStale
      const known = this.#byId.get(document.logId)
      if (!isCurrent || known?.isDeleted) return undefined
      known?.noteReadAt(document.readAt)
      return (known ?? this.#add(document, head)).lease()
    }
    this.#assertOpen(purpose)
    if (creation.never) throw streamNotFound(ref)
    lookUp.isStale = false
    const created = await create(ref, purpose, creation)
    if (created === undefined || lookUp.isStale || this.#byId.has(created.logId)) return undefined
    // The log of a new stream is empty, so it is not read.
    return this.#add(created, emptyHead(created.epoch, created.createdAt)).lease()
  }

  #add(document: StreamDocument, head: Head): StreamLog {
    const log = new StreamLog(this.#logOptions, document, head, this.#options.ciphers.codecFor(document))
    this.#byName.set(streamKey(document.basin, document.name), log)
    this.#byId.set(document.logId, log)
    this.#makeRoom(log)
    return log
  }

  /** Evicts idle streams if there are too many, unless they were used since they were last considered. */
  #makeRoom(added: StreamLog): void {
    const { cachedStreams } = this.#options.limits
    for (let left = SCAN_MAX; left > 0 && this.#byId.size > cachedStreams; left--) {
      this.#hand ??= this.#byId.values()
      const { value: log } = this.#hand.next()
      if (log === undefined) this.#hand = undefined
      else if (log.wasUsed || log === added || !log.isIdle) log.wasUsed = false
      else this.#remove(log)
    }
  }

  #remove(log: StreamLog): void {
    const { basin, name, logId } = log.document
    const key = streamKey(basin, name)
    if (this.#byName.get(key) === log) this.#byName.delete(key)
    if (this.#byId.get(logId) === log) this.#byId.delete(logId)
  }
}

/** A look-up that the calls for a name share. */
interface LookUp {
  readonly request: OpenRequest
  readonly name: string
  /** Set when the stream is changed meanwhile. */
  isStale: boolean
  readonly lease: Promise<StreamLease | undefined>
}

/** Whether a failed look-up fails for both. Otherwise a later one may be allowed to create the stream. */
function isSameRequest(one: OpenRequest, other: OpenRequest): boolean {
  return (
    one.creation.always === other.creation.always &&
    one.creation.config === other.creation.config &&
    one.creation.isConfigDenied === other.creation.isConfigDenied &&
    one.ref.shownAs === other.ref.shownAs
  )
}
