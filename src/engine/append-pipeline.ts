import { expiryOf } from '../core/retention.ts'
import { type Sequenced, sequence } from '../core/sequence.ts'
import { addTrim } from '../core/trims.ts'
import type { AppendBatch } from '../model/append-input.ts'
import type { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import type { StreamPosition } from '../model/position.ts'
import type { SequencedRecord } from '../model/record.ts'
import { encodeRecords } from '../storage/block-codec.ts'
import {
  type Head,
  identityOf,
  isSameHead,
  type StorageSession,
  type StoredBlock,
} from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'
import type { AppendGroup } from './append-group.ts'
import type { StreamDocument } from './documents.ts'
import { closedError, conflictError, deletedError, discardedError, fromStorage } from './errors.ts'
import type { Settings } from './options.ts'
import { type Attempt, settle } from './settlement.ts'

/** What the pipeline needs of the stream it appends to. */
export interface AppendTarget {
  readonly document: StreamDocument
  /** The head as far as it is known to be durable. */
  readonly head: Head
  /** Reads head and configuration anew. Resolves to false when the log is gone. */
  reload(): Promise<boolean>
  /** Called in order, once the append is durable and before its ack. */
  onDurable(written: WrittenAppend): void
}

/** Writes the block of an append's records, once they have their places. */
export type BlockEncoder = (records: readonly SequencedRecord[]) => Uint8Array

export interface WrittenAppend {
  readonly block: StoredBlock
  /** The head that the append left. */
  readonly head: Head
}

interface Entry {
  readonly batch: AppendBatch
  readonly group: AppendGroup | undefined
  readonly encode: BlockEncoder
  readonly resolve: (ack: AppendAck) => void
  readonly reject: (error: unknown) => void
  /** How often it was the first that another engine's append came before. */
  conflicts: number
  /** Whether the head was read anew after the append was asked for. */
  sawReload: boolean
  step: Step
}

interface Writing {
  readonly kind: 'writing' | 'written'
  readonly sequenced: Sequenced
  readonly written: WrittenAppend
}

type Step =
  | { readonly kind: 'queued' }
  | Writing
  /** Refused against a head that may not be durable yet, unless `isFinal`: told only once it is (wire-behaviour.md 3.6). */
  | {
      readonly kind: 'refused'
      readonly error: HeadwaterError
      readonly against: Head
      readonly isFinal: boolean
    }
  /** Not made because one before it in its group was refused. */
  | { readonly kind: 'discarded' }
  /** The storage has another head than expected: nothing was written. */
  | { readonly kind: 'conflicted' }
  /** The storage failed: it may or may not have been written. */
  | { readonly kind: 'failed'; readonly error: HeadwaterError; readonly attempt: Omit<Writing, 'kind'> }

const QUEUED: Step = { kind: 'queued' }
const DISCARDED: Step = { kind: 'discarded' }
const CONFLICTED: Step = { kind: 'conflicted' }
const CONFLICTS_MAX = 100

/**
 * The appends of one stream, in order. Each is sequenced against the head that the one before will leave, handed to the storage at once,
 * and acknowledged in order when it is durable. When the storage reports a conflict (another engine appended, or the configuration
 * changed) the head is read anew and the appends are sequenced again; when it fails, the append and those already behind it fail.
 */
export class AppendPipeline {
  readonly #session: StorageSession
  readonly #settings: Settings
  readonly #target: AppendTarget
  readonly #shared: boolean
  /** In order. From `#next` on all are queued. */
  #entries: Entry[] = []
  #next = 0
  /** The head after all entries before `#next`, when all goes well. */
  #ahead: Head
  /** Whether the head has to be read anew before anything more is sequenced. */
  #broken = false
  #invalidations = 0
  /** The head as it was last read anew. */
  #reloaded: Head | undefined
  #writing = 0
  /** How many writes may be under way: few after a conflict, so that a rival does not make the same ones over and over. */
  #window = Number.POSITIVE_INFINITY
  #settling = false
  #closed = false
  readonly #idle = new Set<() => void>()

  constructor(session: StorageSession, settings: Settings, target: AppendTarget) {
    this.#session = session
    this.#settings = settings
    this.#target = target
    this.#shared = settings.storage.manifest.shared
    this.#ahead = target.head
  }

  get pending(): number {
    return this.#entries.length
  }

  append(batch: AppendBatch, group?: AppendGroup, encode: BlockEncoder = encodeRecords): Promise<AppendAck> {
    if (this.#closed) return Promise.reject(closedError())
    if (this.#entries.length === 0) this.#ahead = this.#target.head
    return new Promise((resolve, reject) => {
      const entry = { batch, group, encode, resolve, reject, conflicts: 0, sawReload: false, step: QUEUED }
      this.#entries.push(entry)
      this.#advance()
    })
  }

  /** The stream was changed from outside: nothing more is sequenced before it was read anew. */
  invalidate(): void {
    this.#broken = true
    this.#invalidations++
  }

  /** Takes no more appends and resolves when those in flight are settled. */
  close(): Promise<void> {
    this.#closed = true
    if (this.#entries.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.add(resolve))
  }

  #advance(): void {
    while (!this.#broken && this.#next < this.#entries.length && this.#writing < this.#window) {
      const entry = this.#entries[this.#next]!
      this.#next++
      this.#begin(entry)
      // On a storage shared with other engines a refusal may rest on an outdated head, which is found out before going on.
      if (entry.step.kind === 'refused' && this.#shared && !entry.step.isFinal) this.#broken = true
    }
    const first = this.#entries[0]
    if (first === undefined) return
    const canSettle = this.#broken ? this.#writing === 0 : first.step.kind !== 'writing'
    if (canSettle) this.#settleSoon()
  }

  #begin(entry: Entry): void {
    if (entry.group?.isOpen === false) {
      entry.step = DISCARDED
      return
    }
    const { document } = this.#target
    const ahead = this.#ahead
    const now = this.#settings.clock.now()
    const stream = { timestamping: document.config.timestamping, cipher: document.cipher }
    const outcome = sequence(ahead, entry.batch, stream, now)
    if (outcome.kind === 'refused') {
      // What the storage held after the append was asked for is as good a moment as any to be refused at, however busy a rival is.
      const isFinal = entry.sawReload && ahead === this.#reloaded
      entry.step = { kind: 'refused', error: outcome.error, against: ahead, isFinal }
      entry.group?.refuse(entry)
      return
    }
    const { next, start, end } = outcome
    const trim = { point: next.trimPoint, at: now }
    // Member by member, here and below: done for every append, and spreading costs more than sequencing.
    const head: Head = {
      epoch: ahead.epoch,
      tail: next.tail,
      trimPoint: next.trimPoint,
      fencingToken: next.fencingToken,
      appendId: this.#settings.newAppendId(),
      appendedAt: now,
      trims:
        trim.point === ahead.trimPoint ? ahead.trims : addTrim(ahead.trims, trim, this.#settings.trimGraceMs),
    }
    const block: StoredBlock = {
      firstSeqNum: start.seqNum,
      endSeqNum: end.seqNum,
      firstTimestamp: start.timestamp,
      lastTimestamp: end.timestamp,
      meteredBytes: entry.batch.meteredBytes,
      expiresAt: expiryOf(document.config.retentionPolicy, now),
      data: entry.encode(outcome.records),
    }
    const attempt = { sequenced: outcome, written: { block, head } }
    entry.step = { kind: 'writing', sequenced: outcome, written: attempt.written }
    this.#ahead = head
    this.#writing++
    this.#session.append({ logId: document.logId, expected: identityOf(ahead), block, head }).then(
      () => this.#onWritten(entry, attempt, undefined),
      (error: unknown) => this.#onWritten(entry, attempt, error),
    )
  }

  #onWritten(entry: Entry, attempt: Omit<Writing, 'kind'>, error: unknown): void {
    this.#writing--
    if (error === undefined) {
      entry.step = { kind: 'written', sequenced: attempt.sequenced, written: attempt.written }
      this.#window *= 2
    } else {
      this.#broken = true
      this.#window = 1
      entry.step = StorageConflict.is(error)
        ? CONFLICTED
        : { kind: 'failed', error: fromStorage(error), attempt }
    }
    this.#settleSoon()
  }

  /** What became durable in one turn is acknowledged together. */
  #settleSoon(): void {
    if (this.#settling) return
    this.#settling = true
    queueMicrotask(() => void this.#settle())
  }

  async #settle(): Promise<void> {
    this.#release()
    // Everything in flight comes to its end before the head is read anew, so that no late write changes it after.
    if (this.#broken && this.#writing === 0 && this.#entries.length > 0) await this.#recover()
    this.#settling = false
    if (this.#entries.length > 0) {
      this.#advance()
      return
    }
    for (const resolve of this.#idle) resolve()
    this.#idle.clear()
  }

  /** Settles what is certain from the front, while all is well. */
  #release(): void {
    let count = 0
    for (const { step, group } of this.#entries) {
      const isCertain =
        step.kind === 'written' ||
        (step.kind === 'refused' && (step.isFinal || (!this.#broken && !this.#shared))) ||
        (!this.#broken && step.kind === 'discarded')
      if (!isCertain) break
      if (step.kind === 'refused') group?.fail()
      count++
    }
    this.#next -= count
    this.#settleAll(this.#entries.splice(0, count))
  }

  /** Publishes and acknowledges what was written, rejects the rest, in order. */
  #settleAll(entries: readonly Entry[]): void {
    for (const { step } of entries) if (step.kind === 'written') this.#target.onDurable(step.written)
    const { tail } = this.#target.head
    for (const entry of entries) settleOne(entry, tail)
  }

  /** Nothing is in flight: settles what is certain, reads the head anew, and queues the rest again. */
  async #recover(): Promise<void> {
    this.#settleCertain()
    const invalidations = this.#invalidations
    // Now and not later: an append that is asked for while the head is read may be younger than what is found.
    for (const entry of this.#entries) entry.sawReload = true
    let exists: boolean
    try {
      exists = await this.#target.reload()
    } catch (error) {
      this.#rejectAll(fromStorage(error))
      return
    }
    if (!exists) {
      this.#rejectAll(deletedError())
      return
    }
    this.#settleRefusals()
    this.#queueAgain()
    this.#next = 0
    this.#ahead = this.#target.head
    this.#reloaded = this.#target.head
    this.#broken = this.#invalidations !== invalidations
  }

  /** Tells what is certain, wherever it stands; the rest stays. */
  #settleCertain(): void {
    const verdicts = settle(this.#entries.map(attemptOf), this.#shared)
    const certain: Entry[] = []
    const rest: Entry[] = []
    let failure: Step | undefined
    this.#entries.forEach((entry, index) => {
      const verdict = verdicts[index]!
      if (verdict === 'again') {
        rest.push(entry)
        return
      }
      const { step } = entry
      if (verdict === 'acknowledge' && step.kind === 'failed')
        entry.step = { kind: 'written', ...step.attempt }
      if (verdict === 'fail') {
        failure = step.kind === 'failed' ? step : failure
        entry.step = failure ?? step
      }
      if (verdict === 'discard') entry.step = DISCARDED
      if (verdict !== 'acknowledge') entry.group?.fail()
      certain.push(entry)
    })
    this.#entries = rest
    this.#settleAll(certain)
  }

  /** A refusal at the front stands when the head it was decided on is the one that the storage holds. */
  #settleRefusals(): void {
    const { head } = this.#target
    for (let first = this.#entries[0]; first?.step.kind === 'refused'; first = this.#entries[0]) {
      if (!isSameHead(identityOf(first.step.against), identityOf(head))) return
      this.#entries.shift()
      first.group?.fail()
      first.reject(first.step.error)
    }
  }

  #queueAgain(): void {
    const overtaken = this.#entries.find(({ step }) => step.kind === 'conflicted')
    for (const entry of this.#entries) {
      entry.group?.reconsider(entry)
      entry.step = QUEUED
    }
    if (overtaken === undefined || ++overtaken.conflicts < CONFLICTS_MAX) return
    this.#entries = this.#entries.filter((entry) => entry !== overtaken)
    overtaken.group?.fail()
    overtaken.reject(conflictError())
  }

  #rejectAll(error: HeadwaterError): void {
    const entries = this.#entries
    this.#entries = []
    this.#next = 0
    for (const entry of entries) {
      entry.group?.fail()
      entry.reject(error)
    }
  }
}

function attemptOf({ step, group }: Entry): Attempt {
  // Nothing is under way when this is asked.
  const outcome = step.kind === 'writing' ? 'queued' : step.kind
  return {
    outcome: step.kind === 'refused' && step.isFinal ? 'refused for good' : outcome,
    group,
    groupHasFailed: group?.failed,
  }
}

function settleOne({ step, group, resolve, reject }: Entry, tail: StreamPosition): void {
  if (step.kind === 'written') {
    const { start, end } = step.sequenced
    resolve({ start, end, tail })
    return
  }
  group?.fail()
  reject(step.kind === 'failed' || step.kind === 'refused' ? step.error : discardedError())
}
