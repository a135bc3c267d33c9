/** An object of a bucket. */
export interface BucketObject {
  readonly key: string
  readonly bytes: number
}

/**
 * What the storage needs of a bucket. Reads see every write that has resolved. Calls are repeated for as long
 * as that may help; then they reject with a `StorageFailure`.
 */
export interface Bucket {
  /** The objects whose keys begin with a prefix, in the order of their keys. */
  list(prefix: string): Promise<readonly BucketObject[]>
  /** Resolves to `length` bytes from `position` on, fewer at the end; undefined if there is no such object. */
  get(key: string, position: number, length: number): Promise<Buffer | undefined>
  /**
   * Stores an object unless there is one with this key. Makes one attempt, which may have stored the object
   * if it rejects.
   */
  create(key: string, body: Uint8Array): Promise<'created' | 'exists'>
  /** Stores an object in place of one that there may be. */
  put(key: string, body: Uint8Array): Promise<void>
  /** Begins an object that is stored in parts. */
  upload(key: string): Upload
  /** Removes an object if it exists. */
  remove(key: string): Promise<void>
}

/** An object that does not exist before `finish` has resolved. */
export interface Upload {
  write(bytes: Uint8Array): Promise<void>
  finish(): Promise<void>
  /** Removes what was written. Never rejects. */
  abandon(): Promise<void>
}
