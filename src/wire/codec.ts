/** One way to compress, by whatever means a runtime has. Both directions take whole messages. */
export interface Codec {
  compress(data: Uint8Array): Promise<Uint8Array>
  /**
   * Rejects with {@link CompressedDataError} when the data is not what it should be, or would make more than `bytesMax`. The memory
   * it takes is in proportion to `data` and `bytesMax`, whatever the data claims.
   */
  decompress(data: Uint8Array, bytesMax: number): Promise<Uint8Array>
}

/** Compressed data that cannot be used. */
export class CompressedDataError extends Error {
  readonly reason: 'malformed' | 'too-large'

  constructor(reason: 'malformed' | 'too-large', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CompressedDataError'
    this.reason = reason
  }
}
