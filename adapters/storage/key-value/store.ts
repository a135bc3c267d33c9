/** A key and its value. */
export type KeyValue = readonly [key: Uint8Array, value: Uint8Array]

/**
 * Selects keys in the order of their bytes, as unsigned numbers. A key sorts before all longer keys that
 * begin with it.
 */
export interface KeyRange {
  /** The lower bound, inclusive. */
  readonly from: Uint8Array
  /** The upper bound, exclusive. */
  readonly to: Uint8Array
  /** The largest number of keys to return, at least 1. */
  readonly limit: number
}

/** Writes that take effect together. No key occurs twice among `puts` and `deletes`. */
export interface KeyValueBatch {
  /**
   * The values that keys must have before the batch; undefined if a key must be absent. A store with a single
   * writer need not check it.
   */
  readonly expected: readonly (readonly [key: Uint8Array, value: Uint8Array | undefined])[]
  /** Values to create or replace. The store may keep the arrays. */
  readonly puts: readonly KeyValue[]
  /** Keys to delete, with or without a value. */
  readonly deletes: readonly Uint8Array[]
  /**
   * Whether it trims, deletes or frees something, so that a store without space should make an exception of
   * it. False by default.
   */
  readonly frees?: boolean | undefined
}

/**
 * An ordered key-value store, the basis of {@link orderedKeyValueStorage}. Keys have up to about 1,100 bytes,
 * values up to about 2.2 MB. It must contain nothing else: give it a database, a sublevel or a prefix of its
 * own.
 *
 * A method may reject with `StorageFailure` to state the kind of a failure and whether nothing was written.
 * Any other error becomes a failure of kind `io`, whose outcome is unknown if `transact` threw it.
 */
export interface OrderedKeyValueStore {
  /** Returns the value of a key, or undefined. Reflects every batch that resolved before. */
  get(key: Uint8Array): Promise<Uint8Array | undefined>
  /**
   * Returns the first keys of a range in ascending order, with their values, as they were at one moment. As
   * fresh as `get`.
   */
  scan(range: KeyRange): Promise<readonly KeyValue[]>
  /**
   * Applies a batch if all expectations hold, atomically, and durably as the options say before it resolves.
   * Otherwise changes nothing. Resolves to whether they held.
   */
  transact(batch: KeyValueBatch): Promise<boolean>
  /** Releases the store. Called once, with no other call in flight. */
  close(): Promise<void>
}
