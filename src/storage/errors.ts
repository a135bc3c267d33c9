const CONFLICT = Symbol.for('headwater.storage.conflict')
const FAILURE = Symbol.for('headwater.storage.failure')

/** An expectation of `commit` or `append` did not hold. Nothing was changed. Checked by brand, not by class. */
export class StorageConflict extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StorageConflict'
    Object.defineProperty(this, CONFLICT, { value: true })
  }

  static is(value: unknown): value is StorageConflict {
    return typeof value === 'object' && value !== null && CONFLICT in value
  }
}

/**
 * `io`: the medium failed; `quota`: no space left; `closed`: the storage is closed; `blocked`: another holder has it;
 * `corrupt`: what is stored is damaged.
 */
export type StorageFailureKind = 'io' | 'quota' | 'closed' | 'blocked' | 'corrupt'

/** Anything else that goes wrong in a storage. */
export class StorageFailure extends Error {
  readonly kind: StorageFailureKind
  /** Whether the failed call certainly changed nothing. When false, what it wrote may turn up later. */
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

  static is(value: unknown): value is StorageFailure {
    return typeof value === 'object' && value !== null && FAILURE in value
  }
}
