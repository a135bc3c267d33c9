import { READ_METERED_BYTES_MAX } from '../../src/model/limits.ts'
import type { StreamPosition } from '../../src/model/position.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import { meteredBytesOf } from '../../src/model/record.ts'
import { millisecondsOf } from '../../src/model/validation.ts'
import type { ReceivedBatch } from '../../src/storage/record-batch.ts'
import { Malformed } from '../../src/wire/json.ts'

/**
 * How far a read has come. It checks that a server sends what was asked for, each record once and in order.
 */
export class ReceivedRange {
  readonly #query: ReadQuery
  /** The lowest sequence number that may follow; undefined until the start is known. */
  #next: number | undefined
  #timestamp = 0
  #count = 0
  #bytes = 0

  constructor(query: ReadQuery) {
    this.#query = query
    // With `clamp`, the start may be moved to the tail, which is below it.
    if (query.clamp !== true) this.#next = query.seqNum
  }

  /** Whether a bound of the query is reached that the client can tell. */
  get isComplete(): boolean {
    const { count, bytes } = this.#query
    return (count !== undefined && this.#count >= count) || (bytes !== undefined && this.#bytes >= bytes)
  }

  /** Whether records were received. */
  get hasBegun(): boolean {
    return this.#count > 0
  }

  /** Begins at the tail, if the start is not known yet. */
  locate(tail: StreamPosition): void {
    this.#next ??= tail.seqNum
  }

  /** Takes the records that a server sent. Throws {@link Malformed}. */
  take({ records, tail }: ReceivedBatch): void {
    const { count, bytes, until } = this.#query
    let next = this.#next ?? 0
    let batchBytes = 0
    for (const { seqNum, timestamp, headers, body } of records) {
      if (seqNum < next || timestamp < this.#timestamp) throw new Malformed('records are out of order')
      if (until !== undefined && timestamp >= millisecondsOf(until)) throw beyondBounds()
      next = seqNum + 1
      this.#timestamp = timestamp
      batchBytes += meteredBytesOf(headers, body)
    }
    this.#count += records.length
    this.#bytes += batchBytes
    if (batchBytes > READ_METERED_BYTES_MAX) throw new Malformed('a batch is larger than 1 MiB')
    if (this.#count > (count ?? this.#count) || this.#bytes > (bytes ?? this.#bytes)) throw beyondBounds()
    if (tail !== undefined && tail.seqNum < next) throw new Malformed('the tail is below a record')
    if (records.length > 0) this.#next = next
  }

  /** The query of what is left to read. */
  rest(): ReadQuery {
    if (this.#next === undefined) return this.#query
    const { timestamp: _, tailOffset: __, clamp: ___, count, bytes, ...others } = this.#query
    return {
      ...others,
      seqNum: this.#next,
      count: count === undefined ? undefined : Math.max(count - this.#count, 0),
      bytes: bytes === undefined ? undefined : Math.max(bytes - this.#bytes, 0),
    }
  }
}

function beyondBounds(): Malformed {
  return new Malformed('records are beyond the bounds of the read')
}
