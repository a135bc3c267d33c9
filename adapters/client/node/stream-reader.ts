import type { IncomingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { ChunkReader, IncomingResponse } from '../exchange.ts'

/** Reads a stream of Node: with each call, everything that has arrived. */
export class StreamReader implements ChunkReader {
  readonly #stream: Readable
  readonly #isCut: () => boolean
  readonly #destroy: () => void
  #failure: Error | undefined
  #isClosed = false
  #wake = () => {}

  /**
   * @param isCut Whether the stream has ended before the body was complete.
   * @param destroy Ends the stream.
   */
  constructor(stream: Readable, isCut: () => boolean, destroy: () => void) {
    this.#stream = stream
    this.#isCut = isCut
    this.#destroy = destroy
    const wake = () => this.#wake()
    stream.on('readable', wake).on('end', wake)
    stream.on('error', (error) => {
      this.#failure ??= error
      wake()
    })
    stream.on('close', () => {
      this.#isClosed = true
      wake()
    })
  }

  read(): ReturnType<ChunkReader['read']> {
    return new Promise((resolve, reject) => {
      this.#wake = () => {
        const stream = this.#stream
        const chunk = stream.read() as Buffer | null
        if (chunk !== null) {
          // Not a `Buffer`, whose `slice` does not copy.
          resolve({ done: false, value: new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length) })
        } else if (stream.readableEnded && !this.#isCut()) resolve({ done: true })
        else if (this.#failure !== undefined) reject(this.#failure)
        else if (stream.readableEnded || this.#isClosed) reject(new Error('the connection was lost'))
        else return
        this.#wake = () => {}
      }
      this.#wake()
    })
  }

  async cancel(): Promise<void> {
    this.#destroy()
  }
}

/** Makes a response of what a client of Node has received. */
export function incomingResponse(
  status: number,
  headers: IncomingHttpHeaders,
  reader: ChunkReader,
): IncomingResponse {
  return {
    status,
    ok: status >= 200 && status < 300,
    type: 'basic',
    headers: {
      get(name) {
        const value = headers[name]
        return value === undefined ? null : String(value)
      },
    },
    body: { getReader: () => reader },
  }
}
