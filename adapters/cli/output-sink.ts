import type { ByteSink } from '../transfer/index.ts'

/** Standard output: waits until what was written has been taken. */
export class OutputSink implements ByteSink {
  readonly #stream: NodeJS.WritableStream

  constructor(stream: NodeJS.WritableStream) {
    this.#stream = stream
    // The failure of a write is told to who wrote.
    stream.on('error', ignore)
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#stream.write(bytes, (error) => (error ? reject(error) : resolve()))
    })
  }

  async close(): Promise<void> {
    this.#stream.off('error', ignore)
  }
}

/** Whether nobody reads any more what was to be written, as with `| head`. */
export function isBrokenPipe(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'EPIPE'
}

function ignore(): void {}
