const GONE: readonly unknown[] = [
  'stream_not_found',
  'stream_deletion_pending',
  'basin_not_found',
  'basin_deletion_pending',
]

/**
 * The failure of a transfer. `aborted`: by the signal. `incomplete`: the input is truncated, and its complete
 * lines are imported. `conflict`: another client appends to the stream. The message may contain text from a
 * service or a file, but no secrets.
 */
export class TransferError extends Error {
  readonly kind: 'failed' | 'aborted' | 'incomplete' | 'conflict'
  /** The code of the error that is its cause. */
  readonly code: string | undefined

  constructor(
    message: string,
    details: {
      readonly kind?: TransferError['kind'] | undefined
      readonly code?: string | undefined
      readonly cause?: unknown
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'TransferError'
    this.kind = details.kind ?? 'failed'
    this.code = details.code
  }
}

/** Whether a stream or its basin does not exist, or is being deleted. */
export function isGone(error: unknown): boolean {
  return error instanceof TransferError && GONE.includes(error.code)
}

export function isConflict(error: unknown): boolean {
  return error instanceof TransferError && error.kind === 'conflict'
}
