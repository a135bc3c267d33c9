import type { HandlerSettings } from '../http/options.ts'
import type { ReplyStream } from '../http/reply.ts'

/** The memory of a message in parts that one response holds, within the limit of pending bodies. */
export class HeldBytes {
  readonly #settings: Pick<HandlerSettings, 'limits' | 'pendingBodies'>
  #bytes = 0

  constructor(settings: Pick<HandlerSettings, 'limits' | 'pendingBodies'>) {
    this.#settings = settings
  }

  /** Adds bytes. Throws `rate_limited` if the responses and requests of all clients hold too many. */
  acquire(bytes: number): void {
    const { limits, pendingBodies } = this.#settings
    // A response alone never exceeds the limit: it would be rejected forever. The largest message bounds it.
    const held = Math.min(this.#bytes + bytes, limits.pendingBodyBytes)
    pendingBodies.acquire(held - this.#bytes)
    this.#bytes = held
  }

  /** Releases all bytes. */
  release(): void {
    this.#settings.pendingBodies.release(this.#bytes)
    this.#bytes = 0
  }
}

const PIECE_BYTES = 65_536

/** A body that is sent in pieces, and held until its last one is taken or the client leaves. */
export class HeldBody implements ReplyStream, AsyncIterator<Uint8Array, undefined> {
  readonly #held: HeldBytes
  #rest: Uint8Array

  constructor(body: Uint8Array, held: HeldBytes) {
    this.#rest = body
    this.#held = held
  }

  async next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#rest.length === 0) return this.return()
    const value = this.#rest.subarray(0, PIECE_BYTES)
    this.#rest = this.#rest.subarray(PIECE_BYTES)
    return { done: false, value }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#rest = this.#rest.subarray(0, 0)
    this.#held.release()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }
}
