import { concatBytes } from '../../src/model/bytes.ts'
import { LINE_BYTES_MAX } from './export-entry.ts'
import { gzipMember } from './gzip.ts'
import { TransferError } from './transfer-error.ts'

export interface Line {
  /** The first is 1. */
  readonly number: number
  /** The bytes without the line break. */
  readonly bytes: Uint8Array
  /** The offset in the input after the line break. */
  readonly end: number
}

const NEWLINE = 0x0a

/**
 * Yields the lines of an input, grouped by chunk. Omits a last line without a line break, which is
 * incomplete.
 *
 * @throws TransferError for a line of more than 8 MiB.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Line[]> {
  let number = 0
  let end = 0
  let open: Uint8Array[] = []
  let openBytes = 0
  for await (const chunk of input) {
    const lines: Line[] = []
    let start = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, start)) {
      open.push(chunk.subarray(start, at))
      openBytes += at - start
      number++
      check(openBytes, number)
      end += openBytes + 1
      lines.push({ number, bytes: concatBytes(open), end })
      open = []
      openBytes = 0
      start = at + 1
    }
    if (start < chunk.length) {
      open.push(chunk.subarray(start))
      openBytes += chunk.length - start
      check(openBytes, number + 1)
    }
    if (lines.length > 0) yield lines
  }
}

function check(bytes: number, number: number): void {
  if (bytes > LINE_BYTES_MAX) {
    throw new TransferError(`line ${number} is longer than ${LINE_BYTES_MAX} bytes`)
  }
}

/** A destination of bytes. `write` resolves when it is ready for more. */
export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>
  /** Resolves when all bytes are as durable as the destination allows. */
  close(): Promise<void>
}

/**
 * The minimum of a gzip member and of a write. Members must stay far below {@link MEMBER_PLAIN_BYTES_MAX}.
 */
const GZIP_BYTES_MIN = 4 * 1024 * 1024
const PLAIN_BYTES_MIN = 256 * 1024

/** Buffers complete lines and writes them in large pieces, compressed or not. A piece ends with a line. */
export class LineSink {
  readonly #sink: ByteSink
  readonly #gzip: boolean
  #buffered: Uint8Array[] = []
  #bufferedBytes = 0

  constructor(sink: ByteSink, gzip: boolean) {
    this.#sink = sink
    this.#gzip = gzip
  }

  async write(lines: Uint8Array): Promise<void> {
    this.#buffered.push(lines)
    this.#bufferedBytes += lines.length
    if (this.#bufferedBytes >= (this.#gzip ? GZIP_BYTES_MIN : PLAIN_BYTES_MIN)) await this.#flush()
  }

  /** Writes the buffered lines, also after a failed transfer, which can then be continued. */
  async close(): Promise<void> {
    try {
      await this.#flush()
    } finally {
      await this.#sink.close()
    }
  }

  /** Drops the buffered lines: a new file that has no others is removed. */
  async discard(): Promise<void> {
    this.#buffered = []
    this.#bufferedBytes = 0
    await this.#sink.close()
  }

  async #flush(): Promise<void> {
    if (this.#bufferedBytes === 0) return
    const lines = concatBytes(this.#buffered)
    this.#buffered = []
    this.#bufferedBytes = 0
    await this.#sink.write(this.#gzip ? await gzipMember(lines) : lines)
  }
}
