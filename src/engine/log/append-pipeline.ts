import { addTrim, recordsExpireAt } from '../../core/retention.ts'
import { sequence } from '../../core/sequence.ts'
import { type AppendBatch, ownBytes } from '../../model/append-input.ts'
import type { SequencedRecord } from '../../model/record.ts'
import type { Clock } from '../../runtime/clock.ts'
import { decodeRecords, encodeRecords } from '../../storage/block-codec.ts'
import type { Head, StorageSession, StoredBlock } from '../../storage/contract.ts'
import { StorageConflict } from '../../storage/errors.ts'
import { identityOf } from '../../storage/heads.ts'
import { fromStorage } from '../errors.ts'
import {
  type AppendEntry,
  type AppendGroup,
  type AppendListener,
  type AppendSink,
  type AppendTarget,
  type BlockEncoder,
  CONFLICTED,
  DISCARDED,
  QUEUED,
  recoverAppends,
  settleAppends,
  type WriteAttempt,
} from './append-recovery.ts'

export interface AppendPipelineOptions {
  readonly session: Pick<StorageSession, 'append'>
  readonly clock: Pick<Clock, 'now'>
  /** Whether other engines may append to the same log. Never false again once it was true. */
  readonly isShared: () => boolean
  /** See `Head.appendId`. */
  readonly newAppendId: () => string
  readonly trimGraceMs: number
}

/** A number as good as infinite, but a small integer, which takes no object of its own. */
const WINDOW_MAX = 2 ** 30

/**
 * The appends of one stream, in order. Each is sequenced against the head that the one before it will leave,
 * passed to the storage at once, and acknowledged in order when it is durable. After a conflict (another
 * engine appended, or the configuration changed) or a failure, the pipeline recovers: see `recoverAppends`.
 */
export class AppendPipeline implements AppendSink {
  readonly #options: AppendPipelineOptions
  readonly #target: AppendTarget
  /** The entries in order. From `#next` on all are queued. Settling and recovery change it in place. */
  readonly #entries: AppendEntry[] = []
  #next = 0
  /** The head after all entries before `#next`, if they succeed. */
  #ahead: Head
  /** Whether the head has to be read again before anything more is sequenced. */
  #needsReload = false
  #invalidations = 0
  /** The head as of the last recovery. */
  #reloaded: Head | undefined
  #writing = 0
  /** How many writes may be in flight: few after a conflict, so that the same ones do not conflict again. */
  #window = WINDOW_MAX
  #isSettling = false

  constructor(options: AppendPipelineOptions, target: AppendTarget) {
    this.#options = options
    this.#target = target
    this.#ahead = target.head
  }

  get pending(): number {
    return this.#entries.length
  }

  enqueue(
    batch: AppendBatch,
    listener: AppendListener,
    group?: AppendGroup,
    encode: BlockEncoder = encodeRecords,
  ): void {
    const entry: AppendEntry = {
      batch,
      group,
      encode,
      listener,
      conflicts: 0,
      sawReload: false,
      state: QUEUED,
    }
    if (this.#entries.length === 0) this.#ahead = this.#target.head
    this.#entries.push(entry)
    this.#advance()
  }

  /** Makes the pipeline read the head before it sequences more: the stream was changed by something else. */
  invalidate(): void {
    this.#needsReload = true
    this.#invalidations++
  }

  #advance(): void {
    while (!this.#needsReload && this.#next < this.#entries.length && this.#writing < this.#window) {
      this.#begin(this.#entries[this.#next++]!)
    }
    const first = this.#entries[0]
    if (first === undefined) return
    const canSettle = this.#needsReload ? this.#writing === 0 : first.state.kind !== 'writing'
    if (canSettle) this.#settleSoon()
  }

  #begin(entry: AppendEntry): void {
    if (entry.group?.isOpen === false) {
      entry.state = DISCARDED
      return
    }
    const { session, clock, isShared, newAppendId, trimGraceMs } = this.#options
    const { document } = this.#target
    const ahead = this.#ahead
    const now = clock.now()
    const stream = { timestamping: document.config.timestamping, cipher: document.cipher }
    const result = sequence(ahead, entry.batch, stream, now)
    if (result.kind !== 'sequenced') {
      // An answer may rest on any state that the storage had after the call, however busy other engines are.
      const isFinal = entry.sawReload && ahead === this.#reloaded
      entry.state = { ...result, against: ahead, isFinal }
      // On a storage shared with other engines the answer may rest on an outdated head: recovery checks it.
      if (!isFinal && isShared()) this.#needsReload = true
      if (result.kind === 'refused') entry.group?.refuse(entry)
      return
    }
    const { next, start, end, records } = result
    // Member by member, here and below: spreading costs more than sequencing.
    const head: Head = {
      epoch: ahead.epoch,
      tail: next.tail,
      trimPoint: next.trimPoint,
      fencingToken: next.fencingToken,
      appendId: newAppendId(),
      appendedAt: now,
      trims:
        next.trimPoint === ahead.trimPoint
          ? ahead.trims
          : addTrim(ahead.trims, { point: next.trimPoint, at: now }, trimGraceMs),
      extensions: ahead.extensions,
      writeState: next.writeState,
    }
    const blocks = blocksOf(entry, records, recordsExpireAt(document.config.retentionPolicy, now))
    // It may be sequenced again, when its caller may have changed its own.
    if (entry.batch.isBorrowed)
      ownBytes(
        entry.batch,
        blocks.flatMap(({ data }) => decodeRecords(data)),
      )
    const attempt: WriteAttempt = { kind: 'writing', start, end, blocks, head }
    entry.state = attempt
    this.#ahead = head
    this.#writing++
    session.append({ logId: document.logId, expected: identityOf(ahead), blocks, head }).then(
      () => {
        this.#writing--
        this.#window = Math.min(2 * this.#window, WINDOW_MAX)
        attempt.kind = 'written'
        if (this.#entries.length > 1 || this.#isSettling) this.#settleSoon()
        else {
          this.#isSettling = true
          this.#settle()
        }
      },
      (error: unknown) => this.#onFailed(entry, attempt, error),
    )
  }

  #onFailed(entry: AppendEntry, attempt: WriteAttempt, error: unknown): void {
    this.#writing--
    this.#window = 1
    this.#needsReload = true
    entry.state = StorageConflict.is(error)
      ? CONFLICTED
      : { kind: 'failed', error: fromStorage(error), attempt }
    this.#settleSoon()
  }

  /** Appends that become durable in one turn are acknowledged together. */
  #settleSoon(): void {
    if (this.#isSettling) return
    this.#isSettling = true
    queueMicrotask(() => this.#settle())
  }

  #settle(): void {
    const needsReload = this.#needsReload
    // The appends at the front whose outcome is certain without reading the head.
    let count = 0
    for (const { state, group } of this.#entries) {
      const isCertain =
        state.kind === 'written' ||
        ('isFinal' in state && (state.isFinal || !needsReload)) ||
        (!needsReload && state.kind === 'discarded')
      if (!isCertain) break
      if (state.kind === 'refused') group?.fail(state.error)
      count++
    }
    this.#next -= count
    settleAppends(this.#entries.splice(0, count), this.#target)
    // Every write in flight ends before the head is read, so that none changes it afterwards.
    if (this.#needsReload && this.#writing === 0 && this.#entries.length > 0) void this.#recover()
    else this.#onSettled()
  }

  async #recover(): Promise<void> {
    const invalidations = this.#invalidations
    const recovered = await recoverAppends(this.#entries, this.#target, this.#options.isShared())
    this.#next = 0
    if (recovered) {
      this.#ahead = this.#target.head
      this.#reloaded = this.#target.head
      this.#needsReload = this.#invalidations !== invalidations
    }
    this.#onSettled()
  }

  #onSettled(): void {
    this.#isSettling = false
    if (this.#entries.length > 0) this.#advance()
  }
}

/** The blocks of an append: one, or one for each part of a large batch. */
function blocksOf(
  { batch, encode }: AppendEntry,
  records: readonly SequencedRecord[],
  expiresAt: number | null,
): readonly StoredBlock[] {
  const { parts } = batch
  if (parts === undefined) return [blockOf(records, batch.meteredBytes, expiresAt, encode(records, 0))]
  let start = 0
  return parts.map((part, index) => {
    const own = records.slice(start, start + part.records.length)
    start += own.length
    return blockOf(own, part.meteredBytes, expiresAt, encode(own, index))
  })
}

function blockOf(
  records: readonly SequencedRecord[],
  meteredBytes: number,
  expiresAt: number | null,
  data: Uint8Array,
): StoredBlock {
  const first = records[0]!
  const last = records.at(-1)!
  return {
    firstSeqNum: first.seqNum,
    endSeqNum: last.seqNum + 1,
    firstTimestamp: first.timestamp,
    lastTimestamp: last.timestamp,
    meteredBytes,
    expiresAt,
    data,
  }
}
