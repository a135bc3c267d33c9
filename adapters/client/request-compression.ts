import type { MaybePromise } from '../../src/runtime/maybe-promise.ts'
import { compressBody } from './compressed-frames.ts'

/** Shorter bodies are sent as they are. */
const COMPRESSION_BYTES_MIN = 8_192

/** Compresses the bodies of requests, where the runtime has a codec on other threads. */
export class RequestCompression {
  #isEnabled: boolean

  constructor(isEnabled: boolean) {
    this.#isEnabled = isEnabled
  }

  /** Returns the compressed body, or undefined if it is better sent as it is. */
  gzip(body: Uint8Array | undefined): MaybePromise<Uint8Array | undefined> {
    const isLong = this.#isEnabled && body !== undefined && body.length >= COMPRESSION_BYTES_MIN
    return isLong ? this.#compressed(body) : undefined
  }

  async #compressed(body: Uint8Array): Promise<Uint8Array | undefined> {
    const compressed = await compressBody(body)
    return compressed !== undefined && compressed.length < body.length ? compressed : undefined
  }

  /** Stops compressing: the server does not accept it. */
  disable(): void {
    this.#isEnabled = false
  }
}
