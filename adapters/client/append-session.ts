import {
  AppendSession,
  discardedError,
  type PreparedAppend,
  type SessionAppender,
} from '../../src/api/append-session.ts'
import { type AppendBatch, ownBytes } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import { BATCH_RECORDS_MAX } from '../../src/model/limits.ts'
import { type SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import { appendByRequest, assertPlain, type PendingBatch, SessionAppends } from './append.ts'
import type { ClientCore } from './core.ts'
import { openStreamAppender } from './stream-appender.ts'
import type { RemoteTarget } from './stream-target.ts'

/**
 * Opens an append session, which ends when `closing` aborts: over HTTP/2 where the runtime and the server
 * have it, which rejects unless the stream exists or is created. Otherwise the first append finds out.
 */
export async function openAppendSession(
  core: ClientCore,
  target: RemoteTarget,
  signal: AbortSignal | undefined,
  closing: SharedSignal | undefined,
): Promise<AppendSession> {
  const { sender, settings, streamContext } = core
  const opening = sender.isDuplex ? core.untilClosed(openStreamAppender(sender, target)) : undefined
  const opened = opening && (await unlessAborted(signal, opening, (late) => late?.release()))
  let onEnd = () => {}
  void core.untilClosed(
    new Promise<void>((resolve) => {
      onEnd = resolve
    }),
  )
  return new AppendSession({
    appender: opened ?? new RequestAppender(core, target),
    reserve: streamContext.reserve,
    inFlightBytes: settings.limits.sessionInFlightBytes,
    clock: settings.clock,
    closing,
    signal,
    revoked: undefined,
    check: assertPlain,
    onEnd,
  })
}

/**
 * Appends the batches of a session by requests, one at a time. Batches that wait meanwhile are sent together.
 *
 * Two requests at a time could be reordered, and no condition prevents it: another writer may store just as
 * many records as the batch that failed, so that the condition of the next one holds.
 */
class RequestAppender implements SessionAppender {
  readonly group = new SessionAppends()
  readonly #core: ClientCore
  readonly #target: RemoteTarget
  /** Batches that wait for the request before them. */
  #waiting: JoinedBatches | undefined

  constructor(core: ClientCore, target: RemoteTarget) {
    this.#core = core
    this.#target = target
  }

  prepare(batch: AppendBatch): PreparedAppend {
    ownBytes(batch)
    return (started) => {
      started()
      return this.#append(batch)
    }
  }

  release(): void {}

  #append(batch: AppendBatch): Promise<AppendAck> {
    const { names } = this.#target
    const waiting = this.#waiting
    // Another append of the stream that was called in between must come in between.
    if (waiting !== undefined && this.#core.isLast(names, waiting) && waiting.takes(batch)) {
      return waiting.add(batch)
    }
    const next = new JoinedBatches()
    const acked = next.add(batch)
    this.#waiting = next
    void this.#core.inOrder(names, () => this.#send(next), next)
    return acked
  }

  /** Appends batches together. Resolves when they are settled. */
  async #send(sent: JoinedBatches): Promise<void> {
    if (this.#waiting === sent) this.#waiting = undefined
    try {
      if (this.group.failed) throw discardedError(this.group.failure)
      sent.resolve(await appendByRequest(this.#core.sender, this.#target, sent.joined()))
    } catch (error) {
      // Before the next one begins.
      this.group.fail(error)
      const isUnknown = HeadwaterError.is(error) && error.mayHaveEffects
      sent.reject(error, isUnknown ? error : discardedError(this.group.failure))
    }
  }
}

/** The most metered bytes of batches that are appended together: encoded, they fit a request in any case. */
const JOINED_BYTES_MAX = 512 * 1024

/**
 * Batches of a session that follow each other and are appended as one, which has the same effect as one after
 * another: the same order, the same conditions, and an ack for each. If the server rejects them together, it
 * would have rejected the first.
 */
class JoinedBatches {
  readonly #batches: PendingBatch[] = []
  #count = 0
  #meteredBytes = 0

  /** Whether the batch can be appended together with those before it. */
  takes(batch: AppendBatch): boolean {
    const first = this.#batches[0]!.batch
    const { records, meteredBytes, fencingToken, matchSeqNum } = batch
    const expected = first.matchSeqNum === undefined ? undefined : first.matchSeqNum + this.#count
    return (
      fencingToken === first.fencingToken &&
      matchSeqNum === expected &&
      this.#count + records.length <= BATCH_RECORDS_MAX &&
      this.#meteredBytes + meteredBytes <= JOINED_BYTES_MAX &&
      hasNoEffectOnOthers(first) &&
      hasNoEffectOnOthers(batch)
    )
  }

  /** Adds a batch, and resolves to its ack. */
  add(batch: AppendBatch): Promise<AppendAck> {
    this.#count += batch.records.length
    this.#meteredBytes += batch.meteredBytes
    return new Promise((acked, failed) => this.#batches.push({ batch, acked, failed }))
  }

  /** All batches as one. */
  joined(): AppendBatch {
    const { batch } = this.#batches[0]!
    const records = this.#batches.flatMap(({ batch }) => batch.records)
    return { ...batch, records, meteredBytes: this.#meteredBytes }
  }

  /** Acknowledges each batch. Records that were appended together have the same timestamp. */
  resolve({ start, end, tail }: AppendAck): void {
    let position = start
    this.#batches.forEach(({ batch, acked }, index) => {
      const seqNum = position.seqNum + batch.records.length
      const next = index === this.#batches.length - 1 ? end : { seqNum, timestamp: start.timestamp }
      acked({ start: position, end: next, tail })
      position = next
    })
  }

  /** Rejects all batches: the first with its own error. */
  reject(error: unknown, discarded: unknown): void {
    const [first, ...others] = this.#batches
    first?.failed(error)
    for (const { failed } of others) failed(discarded)
  }
}

/** Whether all records get the time of the append, and none is a command, which may change a condition. */
function hasNoEffectOnOthers({ records }: AppendBatch): boolean {
  return records.every(({ timestamp, command }) => timestamp === undefined && !command)
}
