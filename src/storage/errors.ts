const CONFLICT = Symbol.for('headwater.storage.conflict')
const FAILURE = Symbol.for('headwater.storage.failure')

/**
 * Thrown if an expectation of `commit` or `append` does not hold. Nothing was changed. Recognized by a symbol
 * instead of its class, so that several copies of the library work together.
 */
export class StorageConflict extends Error {
  /** @param message Names the expectation. */
  constructor(message: string) {
    super(message)
    this.name = 'StorageConflict'
    Object.defineProperty(this, CONFLICT, { value: true })
  }

  /** Whether the value is a conflict, of any copy of the library. */
  static is(value: unknown): value is StorageConflict {
    return typeof value === 'object' && value !== null && CONFLICT in value
  }
}

/**
 * Why a storage failed:
 * - `io`: the medium failed;
 * - `quota`: no space is left;
 * - `closed`: the storage is closed;
 * - `blocked`: another process has it open;
 * - `denied`: a privilege is missing, or the storage is read-only;
 * - `corrupt`: stored data is damaged;
 * - `upgraded`: a newer version of the library has changed the format, and this one cannot use it any more.
 */
export type StorageFailureKind = 'io' | 'quota' | 'closed' | 'blocked' | 'denied' | 'corrupt' | 'upgraded'

/** Any failure of a storage other than a conflict. */
export class StorageFailure extends Error {
  /** Why the storage failed. */
  readonly kind: StorageFailureKind
  /** Whether the failed call certainly changed nothing. If false, its changes may appear later. */
  readonly nothingWritten: boolean

  constructor(
    kind: StorageFailureKind,
    message: string,
    options: { readonly nothingWritten: boolean; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'StorageFailure'
    this.kind = kind
    this.nothingWritten = options.nothingWritten
    Object.defineProperty(this, FAILURE, { value: true })
  }

  /** Whether the value is a failure of a storage, of any copy of the library. */
  static is(value: unknown): value is StorageFailure {
    return typeof value === 'object' && value !== null && FAILURE in value
  }
}

/** Returns the failure of a call after a session was closed. */
export function storageClosed(): StorageFailure {
  return new StorageFailure('closed', 'the storage is closed', { nothingWritten: true })
}
