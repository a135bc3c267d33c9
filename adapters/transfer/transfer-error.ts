/**
 * The failure of a transfer. `aborted`: by the signal. `incomplete`: the input is truncated, and its complete
 * lines are imported. The message may contain text from a service or a file, but no secrets.
 */
export class TransferError extends Error {
  readonly kind: 'failed' | 'aborted' | 'incomplete'

  constructor(
    message: string,
    { kind = 'failed', cause }: { readonly kind?: TransferError['kind']; readonly cause?: unknown } = {},
  ) {
    super(message, { cause })
    this.name = 'TransferError'
    this.kind = kind
  }
}
