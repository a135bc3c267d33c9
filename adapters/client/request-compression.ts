import { trackExternalWork } from '../../src/runtime/clock.ts'
import { nodeGzip, nodeZlib } from '../../src/wire/codec-node.ts'

/** Shorter bodies are sent as they are. */
const COMPRESSION_BYTES_MIN = 8_192

/** Compresses the bodies of requests, where the runtime has a codec on other threads. */
export class RequestCompression {
  #isEnabled: boolean

  constructor(isEnabled: boolean) {
    this.#isEnabled = isEnabled
  }

  /** Resolves to the compressed body; to undefined if it is better sent as it is. */
  async gzip(body: Uint8Array | undefined): Promise<Uint8Array | undefined> {
    const zlib = this.#isEnabled && body !== undefined && body.length >= COMPRESSION_BYTES_MIN && nodeZlib()
    if (!zlib) return undefined
    const compressed = await trackExternalWork(nodeGzip(zlib).compress(body))
    return compressed.length < body.length ? compressed : undefined
  }

  /** Stops compressing: the server does not accept it. */
  disable(): void {
    this.#isEnabled = false
  }
}
