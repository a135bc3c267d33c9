import type { RetentionExtension, Trim } from '../core/retention.ts'
import type { WriteState } from '../core/sequence.ts'
import type { StreamPosition } from '../model/position.ts'
import type { Clock } from '../runtime/clock.ts'

/**
 * The storage contract. A storage keeps a **catalog** of small documents and the **logs** of the streams. It
 * knows nothing about the protocol: sequence numbers, timestamps, trim points and tokens arrive computed.
 *
 * Creating a storage costs nothing until an engine opens it. If its manifest says `shared`, several engines
 * may have it open (tabs, processes, or two engines in one test), and each sees the changes of the others.
 *
 * Every storage passes the test suite of `headwater/conformance`.
 */
export interface Storage {
  /** The guarantees of the storage. */
  readonly manifest: StorageManifest
  /** Opens the storage and creates what is missing. Rejects with {@link StorageFailure} if it cannot. */
  open(context: StorageContext): Promise<StorageSession>
}

/** The surroundings that an engine passes to a storage. */
export interface StorageContext {
  /** The source of all times and timers of the storage. */
  readonly clock: Clock
  /**
   * Called after another engine appended to a log, changed its epoch, created or deleted it. May also be
   * called for changes by this engine. Must not be called synchronously within a call of the engine.
   */
  readonly onLogChanged: (logId: string) => void
  /**
   * Called when the storage may have lost confirmed appends, such as after a failover, before a call returns
   * anything newer. The engine then compares what it knows with the storage.
   */
  readonly onHistoryChanged?: (() => void) | undefined
  /** Receives errors and warnings that belong to no call. */
  readonly onBackgroundError?: ((error: unknown) => void) | undefined
}

/**
 * The failure that a batch or append survives once it resolves: the end of the process, or also power loss.
 * A process crash leaves what the operating system or the browser was given.
 */
export type Durability = 'process-crash' | 'power-loss'

/** The guarantees of a storage beyond the contract. Selects the parts of the conformance suite that run. */
export interface StorageManifest {
  /** A short name for messages and test titles, such as `memory` or `postgres`. */
  readonly name: string
  /** The worst failure that a resolved append survives. */
  readonly durability: 'none' | Durability
  /** Whether several engines may have it open at the same time. */
  readonly shared: boolean
  /**
   * How an engine learns of changes by other engines:
   * - `reliable`: from every notification;
   * - `hint`: notifications may be lost, repeated or late, so the engine also polls the heads;
   * - `none`: the engine only polls.
   */
  readonly notifications: 'reliable' | 'hint' | 'none'
}

/** An open storage. After `close`, every call rejects with {@link StorageFailure} of kind `closed`. */
export interface StorageSession {
  // Catalog

  /** Returns a document. Reflects every commit, by any engine, that resolved before this call. */
  get(collection: Collection, key: string): Promise<Document | undefined>

  /**
   * Returns the documents whose key has the prefix and is greater than `after`, at most `limit`, in ascending
   * order of the UTF-8 bytes of their keys. As fresh as `get`.
   */
  list(collection: Collection, range: ListRange): Promise<Document[]>

  /**
   * Applies all changes or none, atomically towards all calls of all engines, and durably before it resolves.
   * Each document and log is changed or checked at most once. Rejects with {@link StorageConflict} and
   * changes nothing if an expectation does not hold.
   */
  commit(changes: readonly CatalogChange[]): Promise<void>

  // Logs

  /**
   * Returns the head of a log, or undefined if there is none. Reflects every append that resolved before. The
   * caller does not modify it. A storage that can lose confirmed appends compares the log with `known`: see
   * `Head.isReplaced`.
   */
  head(logId: string, known?: HeadIdentity): Promise<Head | undefined>

  /**
   * Adds blocks and replaces the head, atomically, if the log exists and its head is still `expected`.
   * Durable, as the manifest says, before it resolves.
   *
   * A caller may append to a log before earlier appends have resolved. They take effect in the order of the
   * calls, and each expects the head that the previous one leaves: if one fails, those after it fail too.
   * Calls for different logs are independent. A storage should write pending appends together (group commit).
   *
   * Rejects with {@link StorageConflict} if the expectation does not hold (nothing was written), otherwise
   * with {@link StorageFailure}. The storage may keep the request: the engine does not modify it.
   */
  append(request: AppendRequest): Promise<void>

  /**
   * Returns the blocks that contain records at or after `from` and below `endSeqNum`, ascending, without gaps
   * except for reclaimed blocks. The first may begin before `from`, and the last may end after `endSeqNum`.
   * Reflects every append that resolved before this call. Returns at least one block if there is one, and
   * stops after the block that reaches `bytesMax` or `recordsMax`. Of the first block, a storage should
   * return only the records that the read wants.
   *
   * May return trimmed and expired blocks, which the engine filters, and views of bytes that it keeps:
   * nothing writes to them. A missing log reads as empty. Rejects with {@link StorageFailure} of kind
   * `corrupt` if a block is damaged: never skips it.
   */
  read(logId: string, range: ReadRange): Promise<StoredBlock[]>

  /**
   * Frees expired blocks (by `blockExpiresAt` of the current `Head.extensions`), blocks entirely below a
   * point of `Head.trims` whose time is at or before `trimmedBefore`, and the blocks of deleted logs. A block
   * that expires before an older one of its log may wait for it. Never changes a head or any other block,
   * except that it may replace `expiresAt` by `blockExpiresAt`. Does a bounded amount of work. A failure
   * loses nothing.
   */
  reclaim(limits: ReclaimLimits): Promise<Reclaimed>

  /**
   * Returns, in the order of the ids, the metered bytes of all blocks that `read` would return for each log:
   * trimmed and expired blocks count until they are freed. 0 for a missing log. As fresh as `head`, and about
   * as cheap: a storage keeps a counter and does not read blocks.
   */
  measure(logIds: readonly string[]): Promise<number[]>

  /**
   * Rejects if nothing can be written any more until the storage is opened again or repaired. Cheap enough
   * for health checks, which call `get` if it is absent.
   */
  check?(): Promise<void>

  /**
   * Returns whether appends fail for lack of space, as far as is known. Trims, deletions and reads should
   * work nevertheless: a storage reserves space for them. If absent, it is not known.
   */
  isFull?(): boolean

  /**
   * Returns whether no other session has been open since this one was opened. The engine then trusts the
   * heads that it knows. Never true again once it was false. If absent, the manifest decides.
   */
  isExclusive?(): boolean

  /**
   * Elects one of the engines that share a storage to do the background work: freeing blocks, deleting empty
   * streams, finishing deletions, removing expired tokens. Calls `onElected(true)` when this engine is
   * elected, possibly at once, and `onElected(false)` when it no longer is. The returned function withdraws
   * for good; so does `close`, and so does anything else that stops an engine: then another one is elected.
   *
   * Saves work, but correctness must not depend on it: several engines may be elected at the same time. If
   * absent, every engine does the background work.
   */
  electForBackgroundWork?(onElected: (isElected: boolean) => void): () => void

  /** Resolves to the time of a clock that the engines share: they delete by it. If absent, by their own. */
  now?(): Promise<number>

  /** How far that clock is ahead of the engine's, as last measured, in milliseconds. Negative if behind. */
  clockOffsetMs?(): number

  /** Waits for calls in flight, then releases handles, timers and listeners. A second call does nothing. */
  close(): Promise<void>
}

/** The kinds of document. Persisted: keep stable. */
export type Collection = 'basins' | 'streams' | 'deadlines' | 'tokens' | 'usage' | 'settings'

/** Plain JSON. Storages copy it on the way in and out. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [member: string]: JsonValue }

/** A document of the catalog. */
export interface Document {
  /** Well-formed Unicode, at most 1,024 bytes of UTF-8. May contain any code point, U+0000 included. */
  readonly key: string
  /** The content of the document. */
  readonly value: JsonValue
  /** Changes with every write of the key, and is never reused, not even after the document was deleted. */
  readonly version: number
}

/** Selects documents by key. */
export interface ListRange {
  /** Prefix of the keys; `''` selects all. */
  readonly prefix: string
  /** Exclusive; `''` precedes every key. */
  readonly after: string
  /** The largest number of documents to return. */
  readonly limit: number
}

/** A change within a {@link StorageSession.commit}. */
export type CatalogChange =
  /** Creates or replaces a document. */
  | {
      readonly kind: 'put'
      readonly collection: Collection
      readonly key: string
      readonly value: JsonValue
      /** The required version; `null` requires that there is no document, absent requires nothing. */
      readonly expect?: number | null | undefined
    }
  /** Deletes a document if it exists. */
  | {
      readonly kind: 'delete'
      readonly collection: Collection
      readonly key: string
      /** The required version; absent requires nothing. */
      readonly expect?: number | undefined
    }
  /** Creates an empty log with the head of `emptyHead`. Conflicts if the log exists; ids are never reused. */
  | {
      readonly kind: 'create-log'
      readonly logId: string
      readonly epoch: number
      /** Milliseconds since the Unix epoch. */
      readonly createdAt: number
      /** The start of the log. 0 by default. */
      readonly start?: LogStart | undefined
    }
  /** Sets the epoch of the head: appends of an earlier epoch conflict. Conflicts if the log is missing. */
  | {
      readonly kind: 'set-epoch'
      readonly logId: string
      readonly epoch: number
      /** Replaces those of the head. Absent keeps them. */
      readonly extensions?: readonly RetentionExtension[] | undefined
    }
  /**
   * Deletes a log if it exists. Its blocks are freed at once or by `reclaim`. With `expectSeqNum`, conflicts
   * if the log exists with another tail.
   */
  | { readonly kind: 'delete-log'; readonly logId: string; readonly expectSeqNum?: number | undefined }
  /** Changes nothing. Conflicts unless the document has this version. */
  | {
      readonly kind: 'check'
      readonly collection: Collection
      readonly key: string
      readonly expect: number
    }

/** The initial state of a log that continues another one: everything before its tail counts as trimmed. */
export interface LogStart {
  /** The position of the first record. */
  readonly tail: StreamPosition
  /** The initial fencing token; `''` for none. */
  readonly fencingToken: string
}

/** The state of a log, which every append replaces. */
export interface Head {
  /** Version of the configuration that appends are sequenced under. Set by `create-log` and `set-epoch`. */
  readonly epoch: number
  /** The position of the next record. */
  readonly tail: StreamPosition
  /** New readers do not get records below it. */
  readonly trimPoint: number
  /** The current fencing token; `''` for none. */
  readonly fencingToken: string
  /**
   * Globally unique id of the append that left this head; `''` before the first one. The tail alone is not
   * enough, because appends are pipelined: if another engine appends as many records as the first of two
   * appends, which then conflicts, the second must not find the head that it expects.
   */
  readonly appendId: string
  /** The time of the last append, or of the creation of the log, in milliseconds since the Unix epoch. */
  readonly appendedAt: number
  /** The latest trims, at most three, ascending: which blocks `reclaim` may free (`core/retention.ts`). */
  readonly trims: readonly Trim[]
  /** True in the result of `head` if the log lacks the known head or has other records before it. */
  readonly isReplaced?: boolean | undefined
  /**
   * Which blocks expire later than their `expiresAt`, at most four (`blockExpiresAt` in `core/retention.ts`).
   * Set by `set-epoch`: a head that an append leaves has those of the expected head. Absent or empty if there
   * are none.
   */
  readonly extensions?: readonly RetentionExtension[] | undefined
  /**
   * The state, besides the fencing token, that decides about later appends: whether the log is closed, and
   * what its producers have appended. Absent in most logs. An append replaces it; the objects and arrays in
   * it that did not change are those of the expected head, so that a storage can write what changed
   * (`writeStateChange`).
   */
  readonly writeState?: WriteState | undefined
}

/** The fields that distinguish the heads of a log. */
export interface HeadIdentity {
  /** Epoch of the head. */
  readonly epoch: number
  /** Sequence number of the tail. */
  readonly seqNum: number
  /** Id of the append that left the head. */
  readonly appendId: string
}

/** The argument of {@link StorageSession.append}. */
export interface AppendRequest {
  /** Id of the log. */
  readonly logId: string
  /** The head that the append is sequenced against. */
  readonly expected: HeadIdentity
  /**
   * The records to add: consecutive blocks, at least one. Only an append that exceeds the limits of a batch
   * has more (`LARGE_APPEND_BYTES_MAX` in `model/limits.ts`).
   */
  readonly blocks: readonly StoredBlock[]
  /** The head after this append, with the expected epoch. */
  readonly head: Head
}

/**
 * Consecutive records of a log: the batch of one append, or a part of a large one. A storage may merge
 * adjacent blocks with the same `expiresAt`: it concatenates their `data` and adds up their numbers, within
 * 1,000 records, 1 MiB metered and `BATCH_ENCODED_BYTES_MAX` bytes of `data` (`model/limits.ts`). It may also
 * return a part of a block, or several, cut between records (as `splitBlock` does).
 */
export interface StoredBlock {
  /** Sequence number of the first record. */
  readonly firstSeqNum: number
  /** One after the last record. */
  readonly endSeqNum: number
  /** Milliseconds since the Unix epoch. */
  readonly firstTimestamp: number
  /** Milliseconds since the Unix epoch. */
  readonly lastTimestamp: number
  /** Metered bytes of the records. */
  readonly meteredBytes: number
  /**
   * The time at which the records expire for new readers, in milliseconds since the Unix epoch; null for
   * never. The extensions of the head may keep them longer.
   */
  readonly expiresAt: number | null
  /** Opaque to the storage. Appended with at most `SEALED_BLOCK_BYTES_MAX` bytes. Must not be modified. */
  readonly data: Uint8Array
}

/** Selects blocks of a log. */
export interface ReadRange {
  /** A sequence number, or the first block whose `lastTimestamp` is at or after a timestamp. */
  readonly from: { readonly seqNum: number } | { readonly timestamp: number }
  /** Exclusive. */
  readonly endSeqNum: number
  /** Stops once the metered bytes of the returned blocks reach this. */
  readonly bytesMax: number
  /** Stops once the records of the returned blocks reach this. No limit by default. */
  readonly recordsMax?: number | undefined
  /**
   * Memory that the storage may read into, instead of allocating it. The returned blocks may be views of it:
   * the caller is done with them before it lends the same memory again.
   */
  readonly memory?: Uint8Array | undefined
}

/** Bounds of a {@link StorageSession.reclaim}. */
export interface ReclaimLimits {
  /** The current time in milliseconds: blocks that expire at or before it are freed. */
  readonly now: number
  /** Blocks are freed below trims made at or before this time, in milliseconds. */
  readonly trimmedBefore: number
  /** The largest number of blocks to free. */
  readonly blocksMax: number
}

/** The result of a {@link StorageSession.reclaim}. */
export interface Reclaimed {
  /** Whether more blocks can be freed. */
  readonly more: boolean
  /** Existing logs whose blocks were freed, each once. */
  readonly logIds: readonly string[]
}
