import type { EngineStream, ReadBatch, SequencedRecord, StreamTail } from '../../src/index.ts'
import { RECORD_METERED_BYTES_MAX } from '../../src/model/limits.ts'
import type { HandlerSettings } from '../http/options.ts'
import type { ReplyStream } from '../http/reply.ts'
import { isContinuation, missingParts } from './messages.ts'
import { goneError } from './state.ts'

/** The memory of a message in parts that one response holds, within the limit of pending bodies. */
export class HeldBytes {
  readonly #settings: Pick<HandlerSettings, 'limits' | 'pendingBodies'>
  #bytes = 0

  constructor(settings: Pick<HandlerSettings, 'limits' | 'pendingBodies'>) {
    this.#settings = settings
  }

  get isEmpty(): boolean {
    return this.#bytes === 0
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

/** The rest of a message of which a read ends with a part. */
export interface Completion {
  /** The next parts of the message. They count in the held bytes. */
  readonly parts: readonly SequencedRecord[]
  /** The tail of the stream, if it was looked up. */
  readonly tail?: StreamTail | undefined
}

/** Completes the last message of a batch. */
export async function completionOf(
  { records }: ReadBatch<'bytes'>,
  stream: EngineStream,
  held: HeldBytes,
): Promise<Completion> {
  const last = records.at(-1)
  const missing = missingParts(last)
  if (last === undefined || missing === 0) return { parts: [] }
  // That of the batch may be its end, within an append.
  const { tail } = await stream.describe(['read'])
  // The parts of a message are appended together: what claims to be one without the others is none.
  if (last.seqNum + missing >= tail.seqNum) return { parts: [], tail }
  held.acquire(missing * RECORD_METERED_BYTES_MAX)
  let parts: readonly SequencedRecord[] = []
  try {
    parts = await partsAfter(last, missing, stream)
    return { parts, tail }
  } finally {
    if (parts.length === 0) held.release()
  }
}

/**
 * Reads the missing parts after a record, up to the first record that is none: another protocol may have
 * written what only claims to be continued.
 */
async function partsAfter(
  last: SequencedRecord,
  missing: number,
  stream: EngineStream,
): Promise<readonly SequencedRecord[]> {
  const parts: SequencedRecord[] = []
  for (let before = last; parts.length < missing; ) {
    const seqNum = before.seqNum + 1
    const batch = await stream.readUnary({ seqNum, count: missing - parts.length }, { allowsEmpty: 'always' })
    const first = batch.lastSeqNum + 1 - batch.count
    if (batch.count === 0 || first > seqNum) {
      throw goneError(batch.count === 0 ? last.seqNum + 1 + missing : first)
    }
    for (const record of batch.records) {
      if (!isContinuation(before, record)) return parts
      parts.push(record)
      before = record
    }
  }
  return parts
}
