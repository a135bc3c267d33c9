import type { SessionAppender } from '../../src/api/append-session.ts'
import { discardedError } from '../../src/api/errors.ts'
import type { AppendBatch } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import {
  BATCH_ENCODED_BYTES_MAX,
  BATCH_METERED_BYTES_MAX,
  BATCH_RECORDS_MAX,
} from '../../src/model/limits.ts'
import type { AppendRecord } from '../../src/model/record.ts'
import type { AppendRequests } from './append-requests.ts'
import type { ClientCore } from './core.ts'
import { SessionAppends } from './session-appends.ts'
import type { RemoteTarget } from './stream-target.ts'

/**
 * Appends the batches of a session by requests, one at a time. Batches that wait meanwhile are sent together.
 *
 * Two requests at a time could be reordered, and no condition prevents it: another writer may store just as
 * many records as the batch that failed, so that the condition of the next one holds.
 */
export class RequestAppender implements SessionAppender {
  readonly group = new SessionAppends()
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  readonly #requests: AppendRequests
  /** Batches that wait for the request before them. */
  #waiting: BatchGroup | undefined

  constructor(core: ClientCore, target: RemoteTarget, requests: AppendRequests) {
    this.#core = core
    this.#target = target
    this.#requests = requests
  }

  append(batch: AppendBatch, _reservation: unknown, started: () => void): Promise<AppendAck> {
    started()
    const { id } = this.#target
    const waiting = this.#waiting
    // Another append of the stream that was called in between must come in between.
    if (waiting !== undefined && this.#core.isLast(id, waiting) && waiting.takes(batch)) {
      return waiting.add(batch)
    }
    const next = new BatchGroup()
    const acked = next.add(batch)
    this.#waiting = next
    void this.#core.inOrder(id, () => this.#send(next), next)
    return acked
  }

  release(): void {}

  /** Appends the batches of a group. Resolves when they are settled. */
  async #send(sent: BatchGroup): Promise<void> {
    if (this.#waiting === sent) this.#waiting = undefined
    try {
      sent.resolve(await this.#append(sent.joined()))
    } catch (error) {
      // The batch that the server rejects is found by appending them one at a time.
      const isRejected = HeadwaterError.is(error) && !error.mayHaveEffects && !error.retryable
      if (sent.batches.length > 1 && isRejected && !this.group.failed && !this.#core.closing.aborted) {
        await this.#appendEach(sent)
        return
      }
      // Before the next one begins.
      this.group.fail(error)
      const isUnknown = HeadwaterError.is(error) && error.mayHaveEffects
      sent.reject(error, isUnknown ? error : discardedError(this.group.failure))
    }
  }

  async #appendEach({ batches }: BatchGroup): Promise<void> {
    for (const { batch, acked, failed } of batches) {
      try {
        acked(await this.#append(batch))
      } catch (error) {
        this.group.fail(error)
        failed(error)
      }
    }
  }

  async #append(batch: AppendBatch): Promise<AppendAck> {
    if (this.group.failed) throw discardedError(this.group.failure)
    return this.#requests.append(batch)
  }
}

/** A batch that waits for its acknowledgement. */
interface WaitingBatch {
  readonly batch: AppendBatch
  readonly acked: (ack: AppendAck) => void
  readonly failed: (error: unknown) => void
}

/**
 * Batches of a session that follow each other and are appended as one, which has the same effect as one after
 * another: the same order, the same conditions, and an ack for each.
 */
class BatchGroup {
  readonly batches: WaitingBatch[] = []
  #count = 0
  #meteredBytes = 0
  #encodedBytes = 0

  /** Whether the batch can be appended together with those in the group. */
  takes(batch: AppendBatch): boolean {
    const first = this.batches[0]?.batch
    if (first === undefined) return true
    const { records, meteredBytes, fencingToken, matchSeqNum } = batch
    const expected = first.matchSeqNum === undefined ? undefined : first.matchSeqNum + this.#count
    return (
      fencingToken === first.fencingToken &&
      matchSeqNum === expected &&
      this.#count + records.length <= BATCH_RECORDS_MAX &&
      this.#meteredBytes + meteredBytes <= BATCH_METERED_BYTES_MAX &&
      this.#encodedBytes + encodedBytesOf(records) <= BATCH_ENCODED_BYTES_MAX &&
      isPlain(first) &&
      isPlain(batch)
    )
  }

  /** Adds a batch, and resolves to its ack. */
  add(batch: AppendBatch): Promise<AppendAck> {
    this.#count += batch.records.length
    this.#meteredBytes += batch.meteredBytes
    this.#encodedBytes += encodedBytesOf(batch.records)
    return new Promise((acked, failed) => this.batches.push({ batch, acked, failed }))
  }

  /** All batches as one. */
  joined(): AppendBatch {
    const { batch } = this.batches[0]!
    if (this.batches.length === 1) return batch
    return {
      ...batch,
      records: this.batches.flatMap(({ batch }) => batch.records),
      meteredBytes: this.#meteredBytes,
    }
  }

  /** Acknowledges each batch. Records that were appended together have the same timestamp. */
  resolve(ack: AppendAck): void {
    const { start, end, tail } = ack
    let position = start
    this.batches.forEach(({ batch, acked }, index) => {
      const seqNum = position.seqNum + batch.records.length
      const next = index === this.batches.length - 1 ? end : { seqNum, timestamp: start.timestamp }
      acked({ start: position, end: next, tail })
      position = next
    })
  }

  /** Rejects all batches. */
  reject(error: unknown, discarded = error): void {
    const [first, ...others] = this.batches
    first?.failed(error)
    for (const { failed } of others) failed(discarded)
  }
}

/** Whether all records get the time of the append, and none is a command, which may change a condition. */
function isPlain({ records }: AppendBatch): boolean {
  return records.every(({ timestamp, command }) => timestamp === undefined && !command)
}

function encodedBytesOf(records: readonly AppendRecord[]): number {
  return records.reduce((sum, { encodedBytesMax }) => sum + encodedBytesMax, 0)
}
