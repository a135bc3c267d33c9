import { concatBytes } from '../../src/model/bytes.ts'
import { gzipMember } from './gzip-members.ts'

/** Where bytes go. A call resolves when more are wanted. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>
  /** Resolves when what was written is as safe as it can be. */
  close(): Promise<void>
}

/** A member or a write is worth while from here on; compressed members have to stay far below {@link MEMBER_PLAIN_BYTES_MAX}. */
const GZIP_BYTES_MIN = 4 * 1024 * 1024
const PLAIN_BYTES_MIN = 256 * 1024

/** Takes whole lines and passes them on in pieces of a good size, compressed or not; a piece ends with a line. */
export class LineSink {
  readonly #sink: ByteSink
  readonly #gzip: boolean
  #waiting: Uint8Array[] = []
  #waitingBytes = 0

  constructor(sink: ByteSink, gzip: boolean) {
    this.#sink = sink
    this.#gzip = gzip
  }

  async write(lines: Uint8Array): Promise<void> {
    this.#waiting.push(lines)
    this.#waitingBytes += lines.length
    if (this.#waitingBytes >= (this.#gzip ? GZIP_BYTES_MIN : PLAIN_BYTES_MIN)) await this.#flush()
  }

  /** Writes what waits, also after a transfer that failed: what is there can be gone on with. */
  async close(): Promise<void> {
    try {
      await this.#flush()
    } finally {
      await this.#sink.close()
    }
  }

  async #flush(): Promise<void> {
    if (this.#waitingBytes === 0) return
    const lines = concatBytes(this.#waiting)
    this.#waiting = []
    this.#waitingBytes = 0
    await this.#sink.write(this.#gzip ? await gzipMember(lines) : lines)
  }
}
