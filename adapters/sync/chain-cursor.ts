import { deletedUnderReadError } from '../../src/api/errors.ts'
import type { CursorOptions, ReadEvent, RecordCursor } from '../../src/api/record-cursor.ts'
import type { Stream } from '../../src/api/stream.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { codeOf } from '../../src/sync/errors.ts'

/** A stream that continues the one before it. */
export interface ChainPart {
  readonly stream: Stream
  readonly start: number
  /** The start of the next part; undefined for the last part, which may grow. */
  readonly end: number | undefined
}

/** Reads several streams as one, each from where the one before ended. Skips streams that are deleted. */
export class ChainCursor implements RecordCursor {
  readonly #parts: ChainPart[]
  readonly #isCurrent: () => Promise<boolean>
  readonly #options: CursorOptions
  #start: Pick<ReadQuery, 'seqNum' | 'timestamp'>
  #bounds: Omit<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>
  #cursor: RecordCursor | undefined
  /** The sequence number after the last record. */
  #position = 0
  #isClosed = false

  /** `isCurrent` resolves to whether the last part, the copy, is still the one that was opened. */
  constructor(
    parts: readonly ChainPart[],
    isCurrent: () => Promise<boolean>,
    start: Pick<ReadQuery, 'seqNum' | 'timestamp'>,
    bounds: Omit<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>,
    options: CursorOptions,
  ) {
    this.#parts = [...parts]
    this.#isCurrent = isCurrent
    this.#start = start
    this.#bounds = bounds
    this.#options = options
  }

  async next(): Promise<ReadEvent | undefined> {
    for (let part = this.#parts[0]; part !== undefined && !this.#isClosed; part = this.#parts[0]) {
      const event = await this.#nextOf(part)
      if (event !== undefined) {
        if (event.kind === 'batch') this.#count(event.batch)
        return event
      }
      this.#cursor = undefined
      // A part that a bound of the read ended is the last one.
      if (part.end === undefined || this.#position < part.end) break
      this.#parts.shift()
      this.#start = { seqNum: part.end }
    }
    return undefined
  }

  async #nextOf(part: ChainPart): Promise<ReadEvent | undefined> {
    try {
      this.#cursor ??= await this.#open(part)
      return this.#isClosed ? undefined : await this.#cursor?.next()
    } catch (error) {
      const isGone = isStreamMissing(error) || codeOf(error) === 'stream_deleted'
      if (!isGone) throw error
      // Parts are deleted when they are trimmed, and when the copy is replaced.
      if (part.end === undefined || !(await this.#isCurrent())) throw deletedUnderReadError()
      this.#position = part.end
      return undefined
    }
  }

  close(): void {
    this.#isClosed = true
    this.#cursor?.close()
  }

  async #open({ stream, end }: ChainPart): Promise<RecordCursor | undefined> {
    const query = { ...this.#start, ...this.#bounds, ...(end !== undefined && { waitMs: 0 }) }
    const cursor = await stream.openCursor(query, this.#options)
    try {
      // An open cursor stays with its stream, whatever replaces that later.
      if (end === undefined && !(await this.#isCurrent())) throw deletedUnderReadError()
    } catch (error) {
      cursor?.close()
      throw error
    }
    if (this.#isClosed) cursor?.close()
    return cursor
  }

  #count({ count, meteredBytes, lastSeqNum }: (ReadEvent & { readonly kind: 'batch' })['batch']): void {
    const { count: countMax, bytes } = this.#bounds
    this.#position = lastSeqNum + 1
    this.#bounds = {
      ...this.#bounds,
      count: countMax === undefined ? undefined : countMax - count,
      bytes: bytes === undefined ? undefined : bytes - meteredBytes,
    }
  }
}
