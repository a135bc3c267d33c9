const GONE: readonly unknown[] = [
  'stream_not_found',
  'stream_deletion_pending',
  'basin_not_found',
  'basin_deletion_pending',
]

/**
 * What keeps a transfer from its end. `aborted`: somebody asked for it. `incomplete`: the input ends before its end, and what it holds was
 * imported. `unreachable`: there was no answer.
 * `conflict`: somebody else appends to the stream, and this append was refused. The message is for people; it may hold text from a service or a file, but no secret.
 */
export class TransferError extends Error {
  readonly kind: 'failed' | 'aborted' | 'incomplete' | 'unreachable' | 'conflict'
  /** What the service answered with, if that is the reason. */
  readonly code: string | undefined

  constructor(
    message: string,
    details: { readonly kind?: TransferError['kind']; readonly code?: string; readonly cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'TransferError'
    this.kind = details.kind ?? 'failed'
    this.code = details.code
  }
}

/** Whether a service said that a stream or its basin is not there, or is being deleted. */
export function isGone(error: unknown): boolean {
  return error instanceof TransferError && GONE.includes(error.code)
}

export function isConflict(error: unknown): boolean {
  return error instanceof TransferError && error.kind === 'conflict'
}
