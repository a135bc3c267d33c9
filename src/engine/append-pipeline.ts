import { expiryOf } from '../core/retention.ts'
import { type Sequenced, sequence } from '../core/sequence.ts'
import { addTrim } from '../core/trims.ts'
import type { AppendBatch } from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import type { StreamPosition } from '../model/position.ts'
import { encodeRecords } from '../storage/block-codec.ts'
import type { Clock } from '../storage/clock.ts'
import {
  type Head,
  type HeadIdentity,
  identityOf,
  isSameHead,
  type StorageSession,
  type StoredBlock,
} from '../storage/contract.ts'
import { StorageConflict } from '../storage/errors.ts'
import type { StreamDocument } from './documents.ts'
import type { Settings } from './options.ts'
import { closedError, conflictError, fromStorage } from './storage-errors.ts'

/** Appends that stand or fall together in order: once one failed, those behind it are not made (an append session). */
export class AppendGroup {
  /** One of them failed for good. */
  failed = false
  /** One of them is refused as things stand. */
  refused: unknown = undefined
}

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

export interface WrittenAppend {
  readonly block: StoredBlock
  /** The head that the append left. */
  readonly head: Head
}

interface Entry {
  readonly batch: AppendBatch
  readonly group: AppendGroup | undefined
  readonly resolve: (ack: AppendAck) => void
  readonly reject: (error: unknown) => void
  conflicts: number
  step: Step
}

type Step =
  | { readonly kind: 'queued' }
  | { readonly kind: 'writing' | 'written'; readonly sequenced: Sequenced; readonly written: WrittenAppend }
  /** Refused against a state that may not be durable yet: told only once it is (wire-behaviour.md 3.6). */
  | { readonly kind: 'refused'; readonly error: HeadwaterError; readonly against: Head }
  /** Not made because one before it in its group was refused. */
  | { readonly kind: 'discarded' }
  /** The storage has another head than expected: nothing was written. */
  | { readonly kind: 'conflicted' }
  | { readonly kind: 'failed'; readonly error: HeadwaterError }

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
  readonly #clock: Clock
  readonly #target: AppendTarget
  readonly #shared: boolean
  readonly #trimGraceMs: number
  readonly #writer: string
  /** In order. From `#next` on all are queued. */
  readonly #entries: Entry[] = []
  #next = 0
  /** The head after all entries before `#next`, when all goes well. */
  #ahead: Head
  /** Whether the head has to be read anew before anything more is sequenced. */
  #broken = false
  #writing = 0
  #settling = false
  #closed = false
  readonly #idle = new Set<() => void>()

  constructor(session: StorageSession, settings: Settings, target: AppendTarget) {
    this.#session = session
    this.#clock = settings.clock
    this.#target = target
    this.#shared = settings.storage.manifest.shared
    this.#trimGraceMs = settings.trimGraceMs
    this.#writer = settings.engineId
    this.#ahead = target.head
  }

  get pending(): number {
    return this.#entries.length
  }

  append(batch: AppendBatch, group?: AppendGroup): Promise<AppendAck> {
    if (this.#closed) return Promise.reject(closedError())
    if (this.#entries.length === 0) this.#ahead = this.#target.head
    return new Promise((resolve, reject) => {
      this.#entries.push({ batch, group, resolve, reject, conflicts: 0, step: QUEUED })
      this.#advance()
    })
  }

  /** The stream was changed from outside: nothing more is sequenced before it was read anew. */
  invalidate(): void {
    this.#broken = true
  }

  /** Takes no more appends and resolves when those in flight are settled. */
  close(): Promise<void> {
    this.#closed = true
    if (this.#entries.length === 0) return Promise.resolve()
    return new Promise((resolve) => this.#idle.add(resolve))
  }

  #advance(): void {
    while (!this.#broken && this.#next < this.#entries.length) {
      const entry = this.#entries[this.#next]!
      this.#next++
      if (entry.step.kind === 'queued') this.#begin(entry)
      // On a storage shared with other engines a refusal may rest on an outdated head, which is found out before going on.
      if (entry.step.kind === 'refused' && this.#shared) this.#broken = true
    }
    const first = this.#entries[0]
    if (first === undefined) return
    const canSettle = this.#broken ? this.#writing === 0 : first.step.kind !== 'writing'
    if (canSettle) this.#settleSoon()
  }

  #begin(entry: Entry): void {
    const { group } = entry
    if (group?.failed || group?.refused) {
      entry.step = DISCARDED
      return
    }
    const { document } = this.#target
    const ahead = this.#ahead
    const now = this.#clock.now()
    const stream = { timestamping: document.config.timestamping, cipher: document.cipher }
    const outcome = sequence(ahead, entry.batch, stream, now)
    if (outcome.kind === 'refused') {
      entry.step = { kind: 'refused', error: outcome.error, against: ahead }
      if (group) group.refused = entry
      return
    }
    const { next, start, end } = outcome
    const head: Head = {
      ...next,
      epoch: ahead.epoch,
      writer: this.#writer,
      appendedAt: now,
      trims:
        next.trimPoint === ahead.trimPoint
          ? ahead.trims
          : addTrim(ahead.trims, { point: next.trimPoint, at: now }, this.#trimGraceMs),
    }
    const block: StoredBlock = {
      firstSeqNum: start.seqNum,
      endSeqNum: end.seqNum,
      firstTimestamp: start.timestamp,
      lastTimestamp: end.timestamp,
      meteredBytes: entry.batch.meteredBytes,
      expiresAt: expiryOf(document.config.retentionPolicy, now),
      data: encodeRecords(outcome.records),
    }
    entry.step = { kind: 'writing', sequenced: outcome, written: { block, head } }
    this.#ahead = head
    this.#write(entry, { block, head }, identityOf(ahead))
  }

  #write(entry: Entry, written: WrittenAppend, expected: HeadIdentity): void {
    this.#writing++
    const { logId } = this.#target.document
    this.#session.append({ logId, expected, ...written }).then(
      () => this.#onWritten(entry, undefined),
      (error: unknown) => this.#onWritten(entry, error),
    )
  }

  #onWritten(entry: Entry, error: unknown): void {
    this.#writing--
    if (error === undefined) {
      if (entry.step.kind === 'writing') entry.step = { ...entry.step, kind: 'written' }
    } else {
      this.#broken = true
      entry.step = StorageConflict.is(error) ? CONFLICTED : { kind: 'failed', error: fromStorage(error) }
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

  /** Settles entries from the front: durable ones are published and acknowledged, refused and failed ones rejected. */
  #release(): void {
    const settlements: ((tail: StreamPosition) => void)[] = []
    for (const entry of this.#entries) {
      const { step } = entry
      if (step.kind === 'written') {
        const { start, end } = step.sequenced
        this.#target.onDurable(step.written)
        settlements.push((tail) => entry.resolve({ start, end, tail }))
      } else {
        const error = this.#finalError(entry)
        if (error === undefined) break
        settlements.push(() => this.#reject(entry, error))
      }
    }
    this.#entries.splice(0, settlements.length)
    this.#next -= settlements.length
    const { tail } = this.#target.head
    for (const settle of settlements) settle(tail)
  }

  /** How an entry fails when all before it are settled; undefined while that is open. */
  #finalError({ step, group }: Entry): HeadwaterError | undefined {
    if (step.kind === 'failed') return step.error
    if (step.kind === 'discarded' && group?.failed) return discardedError()
    // What the refusal rests on may have failed, or may have changed elsewhere: then it is looked into when the head was read anew.
    return step.kind === 'refused' && !this.#shared && !this.#broken ? step.error : undefined
  }

  #reject(entry: Entry, error: unknown): void {
    if (entry.group) entry.group.failed = true
    entry.reject(error)
  }

  /** Nothing is in flight: reads the head anew, rejects what stays refused and queues the rest again. */
  async #recover(): Promise<void> {
    this.#failBehindFailure()
    let exists: boolean
    try {
      exists = await this.#target.reload()
    } catch (error) {
      this.#rejectAll(HeadwaterError.is(error) ? error : fromStorage(error))
      return
    }
    if (!exists) {
      this.#rejectAll(goneError())
      return
    }
    this.#settleRefusals()
    for (const entry of this.#entries) this.#queueAgain(entry)
    this.#next = 0
    this.#ahead = this.#target.head
    this.#broken = false
  }

  /** An append that was handed over behind one that the storage failed on fails with it: nothing of it was written. */
  #failBehindFailure(): void {
    let failure: Step | undefined
    for (const entry of this.#entries) {
      if (entry.step.kind === 'failed') failure = entry.step
      else if (failure !== undefined && entry.step.kind === 'conflicted') entry.step = failure
    }
    this.#release()
  }

  /** A refusal at the front stands when the head it was decided on is the one that the storage holds. */
  #settleRefusals(): void {
    const { head } = this.#target
    for (let first = this.#entries[0]; first?.step.kind === 'refused'; first = this.#entries[0]) {
      const { against, error } = first.step
      if (!isSameHead(identityOf(against), identityOf(head))) return
      this.#entries.shift()
      this.#reject(first, error)
    }
  }

  #queueAgain(entry: Entry): void {
    if (entry.step.kind === 'queued') return
    if (entry.group?.refused === entry) entry.group.refused = undefined
    entry.conflicts++
    entry.step = entry.conflicts > CONFLICTS_MAX ? { kind: 'failed', error: conflictError() } : QUEUED
  }

  #rejectAll(error: HeadwaterError): void {
    for (const entry of this.#entries.splice(0)) this.#reject(entry, error)
    this.#next = 0
  }
}

function discardedError(): HeadwaterError {
  return new HeadwaterError('other', 'an earlier append of this session failed; this one was not made')
}

/** The stream was deleted while appends were under way. */
export function goneError(): HeadwaterError {
  return new HeadwaterError('stream_deletion_pending', 'stream deletion pending')
}
