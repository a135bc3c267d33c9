/** The compression algorithms of the protocol. */
export type Compression = 'zstd' | 'gzip'

/** A compression algorithm. Both directions take whole messages. */
export interface Codec {
  compress(data: Uint8Array): Promise<Uint8Array>
  /**
   * Rejects with {@link CompressedDataError} if the data is damaged or decompresses to more than `bytesMax`.
   * Uses memory in proportion to `data` and `bytesMax`, whatever size the data declares.
   */
  decompress(data: Uint8Array, bytesMax: number): Promise<Uint8Array>
}

/** Compressed data that is damaged or too large. */
export class CompressedDataError extends Error {
  readonly reason: 'malformed' | 'too-large'

  constructor(reason: 'malformed' | 'too-large', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CompressedDataError'
    this.reason = reason
  }
}

export function tooLarge(cause?: unknown): CompressedDataError {
  return new CompressedDataError('too-large', 'decompresses to too much', cause)
}

export function damaged(cause?: unknown): CompressedDataError {
  return new CompressedDataError('malformed', 'damaged compressed data', cause)
}
