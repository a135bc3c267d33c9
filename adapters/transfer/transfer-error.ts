/**
 * What keeps a transfer from its end. `aborted`: somebody asked for it. `incomplete`: the input ends before its end, and what it holds was
 * imported. The message is for people; it may hold text from a service or a file, but no secret.
 */
export class TransferError extends Error {
  readonly kind: 'failed' | 'aborted' | 'incomplete'
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
