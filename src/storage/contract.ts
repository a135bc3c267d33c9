import type { Trim } from '../core/trims.ts'
import type { StreamPosition } from '../model/position.ts'
import type { Clock } from './clock.ts'

/**
 * The storage contract. A storage keeps two things: a **catalog** of small documents and the **logs** of the streams. It decides
 * nothing about the protocol: sequence numbers, timestamps, trim points and tokens arrive computed.
 *
 * A storage is a factory that costs nothing until an engine opens it. One storage may be opened by several engines (tabs,
 * processes, or two engines in one test) when its manifest says `shared`; every engine then sees what the others did.
 *
 * `headwater/conformance` holds the suite that every storage passes.
 */
export interface Storage {
  readonly manifest: StorageManifest
  /** Opens, creating what is missing. Rejects with {@link StorageFailure} when it cannot. */
  open(context: StorageContext): Promise<StorageSession>
}

/** What a storage promises beyond the contract. Decides which parts of the conformance suite run. */
export interface StorageManifest {
  /** For messages and test titles: `memory`, `indexeddb`, `filesystem`, `postgres`. */
  readonly name: string
  /** What an append has survived when it resolves. */
  readonly durability: 'none' | 'process-crash' | 'power-loss'
  /** Whether several engines may have it open at once. */
  readonly shared: boolean
  /**
   * How changes made by other engines are told: `reliable` loses none, `hint` may lose, repeat or delay them (the engine polls
   * heads as well), `none` tells nothing (the engine only polls).
   */
  readonly notifications: 'reliable' | 'hint' | 'none'
}

export interface StorageContext {
  /** All timers and times of the storage come from here. */
  readonly clock: Clock
  /**
   * Called after another engine changed a log: appended to it, changed its epoch, created or deleted it. May also be called for
   * this engine's own changes. Must not be called synchronously from within a call of the engine.
   */
  readonly onLogChanged: (logId: string) => void
}

/** An open storage. After `close`, every call rejects with {@link StorageFailure} of kind `closed`. */
export interface StorageSession {
  // Catalog ---------------------------------------------------------------------------------------------------------

  /** The document, as of the last commit that resolved before this call (of any engine) or a later one. */
  get(collection: Collection, key: string): Promise<Document | undefined>

  /**
   * Documents whose key has the prefix and is greater than `after`, ascending by the UTF-8 bytes of the keys, at most `limit`.
   * As fresh as `get`.
   */
  list(collection: Collection, range: ListRange): Promise<Document[]>

  /**
   * Makes all changes or none, atomically towards every other call of every engine, and durably before it resolves. Rejects with
   * {@link StorageConflict}, having changed nothing, when an expectation does not hold.
   */
  commit(changes: readonly CatalogChange[]): Promise<void>

  // Logs ------------------------------------------------------------------------------------------------------------

  /** The log's head, or undefined when there is no such log. Includes every append that resolved before this call. */
  head(logId: string): Promise<Head | undefined>

  /**
   * Adds one block and replaces the head, atomically, on condition that the log exists and its head still has `expected`. Durable,
   * as the manifest says, before it resolves.
   *
   * Calls for one log may be made before earlier ones have resolved: they take effect in the order of the calls, each expecting
   * the head that the one before leaves. When one is not made, those behind it fail too, for their expectation does not hold.
   * Calls for different logs are independent. A storage is expected to write what waits together (group commit).
   *
   * Rejects with {@link StorageConflict} when the expectation does not hold (nothing was written), or {@link StorageFailure}.
   * The block's bytes may be kept: the engine does not change them.
   */
  append(request: AppendRequest): Promise<void>

  /**
   * Blocks that hold records at or after `from` and below `endSeqNum`, ascending, without a gap other than what was reclaimed.
   * Whole blocks: the first may begin before `from`, the last may end after `endSeqNum`. Includes every append that resolved
   * before this call. At least one block when there is one; stops after the block that reaches `bytesMax` or `recordsMax`.
   * Trimmed and expired blocks may still be returned: the engine leaves them out. The engine may change the returned bytes.
   * A log that does not exist reads as empty. Damage rejects with {@link StorageFailure} of kind `corrupt`: never skipped.
   */
  read(logId: string, range: ReadRange): Promise<StoredBlock[]>

  /**
   * Frees blocks that have expired at `now`, blocks wholly below a point of `Head.trims` whose time is at or before
   * `trimmedBefore`, and what deleted logs left. Never touches a head or any other block. Bounded work: tells when more is left.
   * Failing here loses nothing.
   */
  reclaim(limits: ReclaimLimits): Promise<Reclaimed>

  /**
   * The metered bytes of the blocks that `read` would give of each whole log, in the order of the ids: trimmed and expired ones count until
   * they are freed. 0 for a log that does not exist. As fresh as `head`. Costs about as much as reading the heads: a storage keeps count, it does not read blocks.
   */
  measure(logIds: readonly string[]): Promise<number[]>

  /**
   * On a storage that many engines share, of which most would look at the same things in vain: tells an engine when background work is its
   * business, and when it is not any more (freeing blocks, deleting empty streams, finishing deletions, dropping expired tokens; not what
   * each engine does for itself). `onTurn` may be called at once. Before its first call it is not this engine's business. The returned function gives the turn
   * up for good; `close` does so, too, and so does whatever else keeps an engine from working, so that another one has its turn.
   *
   * It saves work, and nothing relies on it: several engines may have the turn at once. Absent: it always is its business.
   */
  backgroundTurn?(onTurn: (isOurs: boolean) => void): () => void

  /** Waits for what is in flight, then releases everything: handles, timers, listeners. A second call does nothing. */
  close(): Promise<void>
}

/** The kinds of document. Persisted: keep stable. */
export type Collection = 'basins' | 'streams' | 'deadlines' | 'tokens' | 'usage' | 'settings'

/** Plain JSON, copied on the way in and out. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [member: string]: JsonValue }

export interface Document {
  /** Well-formed Unicode, at most 1,024 bytes of UTF-8; may hold any code point, U+0000 included. */
  readonly key: string
  readonly value: JsonValue
  /** Changes with every write of the key and never returns, not even after the document was deleted and made anew. */
  readonly version: number
}

export interface ListRange {
  readonly prefix: string
  /** Exclusive; `''` is before every key. */
  readonly after: string
  readonly limit: number
}

export type CatalogChange =
  | {
      readonly kind: 'put'
      readonly collection: Collection
      readonly key: string
      readonly value: JsonValue
      /** The version that must be there, `null` for "no document", absent for "whatever is there". */
      readonly expect?: number | null
    }
  | {
      readonly kind: 'delete'
      readonly collection: Collection
      readonly key: string
      readonly expect?: number
    }
  /** Makes an empty log with the head of `emptyHead`. Log ids are unique for ever; one that exists is a conflict. */
  | {
      readonly kind: 'create-log'
      readonly logId: string
      readonly epoch: number
      readonly createdAt: number
      /** Where its first record goes; absent is the beginning. */
      readonly start?: LogStart
    }
  /** Sets the epoch of the head, so that appends sequenced under another configuration conflict. Missing log: conflict. */
  | { readonly kind: 'set-epoch'; readonly logId: string; readonly epoch: number }
  /**
   * From this moment the log does not exist; its bytes are freed at once or by `reclaim`. Missing log: nothing. With `expectSeqNum`
   * it is a conflict when the log exists and its tail is elsewhere.
   */
  | { readonly kind: 'delete-log'; readonly logId: string; readonly expectSeqNum?: number }
  /** Changes nothing: a conflict unless the document has this version (`null`: unless there is none). */
  | {
      readonly kind: 'check'
      readonly collection: Collection
      readonly key: string
      readonly expect: number | null
    }

/** What a log is created with that goes on where another one was: everything before counts as trimmed. */
export interface LogStart {
  readonly tail: StreamPosition
  readonly fencingToken: string
}

/** The state of a log that is replaced with every append. */
export interface Head {
  /** Set by `create-log` and `set-epoch`: which version of the stream's configuration appends are sequenced under. */
  readonly epoch: number
  readonly tail: StreamPosition
  /** Records below are gone for new readers. */
  readonly trimPoint: number
  readonly fencingToken: string
  /**
   * Names the append that left this head, `''` when none did: unique to it for ever, as are engine and attempt. Appends are pipelined, so the tail
   * alone would not do: when the first of two conflicts because somebody else appended as many records, the second must not find the head
   * that it expects.
   */
  readonly appendId: string
  /** Time of the last append or, before it, of the creation; milliseconds. */
  readonly appendedAt: number
  /** The latest trims, ascending, at most three: which blocks `reclaim` may free, and from when on (`core/trims.ts`). */
  readonly trims: readonly Trim[]
}

/** Tells two heads of a log apart. */
export interface HeadIdentity {
  readonly epoch: number
  /** That of the tail. */
  readonly seqNum: number
  readonly appendId: string
}

export interface AppendRequest {
  readonly logId: string
  readonly expected: HeadIdentity
  readonly block: StoredBlock
  /** The head after this append; its epoch is the expected one. */
  readonly head: Head
}

/**
 * Consecutive records of a log: one append's batch as it is given to `append`. A storage may merge neighbours that have the same
 * `expiresAt` by concatenating their `data` and adding their numbers up, within 1,000 records, 1 MiB metered and
 * `BATCH_ENCODED_BYTES_MAX` bytes of `data` (model/limits.ts). It may also give a block in pieces, as `splitBlock` cuts it (split-block.ts), unless it is
 * asked for `unsplit` ones.
 */
export interface StoredBlock {
  readonly firstSeqNum: number
  /** One after the last record's. */
  readonly endSeqNum: number
  readonly firstTimestamp: number
  readonly lastTimestamp: number
  readonly meteredBytes: number
  /** Time from which the records no longer exist for new readers; null is never. */
  readonly expiresAt: number | null
  /** Opaque to the storage. That of one append has at most `SEALED_BLOCK_BYTES_MAX` bytes (sealed-block.ts). */
  readonly data: Uint8Array
}

export interface ReadRange {
  /** A sequence number, or the first block whose `lastTimestamp` is at or after a timestamp. */
  readonly from: { readonly seqNum: number } | { readonly timestamp: number }
  /** Exclusive. */
  readonly endSeqNum: number
  /** Stop once the returned blocks' metered bytes reach this. */
  readonly bytesMax: number
  /** Stop once the returned blocks' records reach this; absent is no limit. */
  readonly recordsMax?: number
  /** Whether the records of one append have to be in one block: for whoever tells appends apart. Absent is false. */
  readonly unsplit?: boolean
}

export interface ReclaimLimits {
  readonly now: number
  readonly trimmedBefore: number
  /** How many blocks to free at the most. */
  readonly blocksMax: number
}

export interface Reclaimed {
  /** Whether more is left to free. */
  readonly more: boolean
  /** The logs that exist and of which blocks were freed, each once. */
  readonly logIds: readonly string[]
}

/** What an append that was sequenced against this head expects. */
export function identityOf(head: Head): HeadIdentity {
  return { epoch: head.epoch, seqNum: head.tail.seqNum, appendId: head.appendId }
}

export function isSameHead(a: HeadIdentity, b: HeadIdentity): boolean {
  return a.epoch === b.epoch && a.seqNum === b.seqNum && a.appendId === b.appendId
}
