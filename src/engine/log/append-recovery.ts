import { discardedError } from '../../api/append-session.ts'
import { resolveAttempts } from '../../core/resolve-attempts.ts'
import { streamTailOf } from '../../core/sequence.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { HeadwaterError } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { SequencedRecord } from '../../model/record.ts'
import type { Head, StoredBlock } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import { identityOf, isSameHead } from '../../storage/heads.ts'
import { conflictError, deletedError, fromStorage, withoutEffects } from '../errors.ts'

/** Encodes a block of an append once its records are sequenced. `part` is the index of the block. */
export type BlockEncoder = (records: readonly SequencedRecord[], part: number) => Uint8Array

/** Receives the outcome of one append. Callbacks, because every promise on the way would cost a turn. */
export interface AppendListener {
  /** Called when the append is durable, or is known to have been made before. */
  acked(ack: AppendAck): void
  failed(error: unknown): void
}

/** Accepts appends in order, once they are encrypted. */
export interface AppendSink {
  enqueue(batch: AppendBatch, listener: AppendListener, group?: AppendGroup, encode?: BlockEncoder): void
}

/**
 * Appends of which none is made after one that failed: those of an append session. A refusal may be
 * reconsidered while the head that it rests on is uncertain; until then no later append of the group is made
 * either.
 */
export class AppendGroup {
  /** Whether an append failed permanently, and why the first of them did. Set by `fail` only. */
  failed = false
  failure: unknown
  #refused: object | undefined

  get isOpen(): boolean {
    return !this.failed && this.#refused === undefined
  }

  fail(error: unknown): void {
    if (!this.failed) this.failure = error
    this.failed = true
  }

  refuse(append: object): void {
    this.#refused ??= append
  }

  reconsider(append: object): void {
    if (this.#refused === append) this.#refused = undefined
  }
}

/** The stream that a pipeline appends to. */
export interface AppendTarget {
  readonly document: StreamDocument
  /** The last head known to be durable. */
  readonly head: Head
  /** Reads head and configuration from the storage. Resolves to false when the log no longer exists. */
  reload(): Promise<boolean>
  /** The head is read again before the next use. */
  markStale(): void
  /** Called in order, once an append is durable and before its acknowledgement. */
  onDurable(attempt: WriteAttempt): void
}

export interface AppendEntry {
  readonly batch: AppendBatch
  readonly group: AppendGroup | undefined
  readonly encode: BlockEncoder
  readonly listener: AppendListener
  /** How often it was the first append to conflict with one of another engine. */
  conflicts: number
  /** Whether the head was read again after the append was called. */
  sawReload: boolean
  state: AppendState
}

/** A write that the storage was asked for. `kind` changes in place, so that an append makes one object. */
export interface WriteAttempt {
  kind: 'writing' | 'written'
  readonly start: StreamPosition
  readonly end: StreamPosition
  /** One, or several of a large append. */
  readonly blocks: readonly StoredBlock[]
  readonly head: Head
}

/** An outcome without a write, which is reported only once the head that it rests on is durable. */
interface Answer {
  /** The head that it rests on. */
  readonly against: Head
  /** Whether the storage had this head after the append was called. */
  readonly isFinal: boolean
}

export type AppendState =
  | { readonly kind: 'queued' }
  | WriteAttempt
  | (Answer & { readonly kind: 'refused'; readonly error: HeadwaterError })
  /** Stored by an earlier append. */
  | (Answer & { readonly kind: 'duplicate'; readonly start: StreamPosition; readonly end: StreamPosition })
  /** It was skipped, because an earlier append of its group was rejected. */
  | { readonly kind: 'discarded' }
  /** The storage has another head than expected: nothing was written. */
  | { readonly kind: 'conflicted' }
  /** The storage failed: the append may or may not have been written. */
  | { readonly kind: 'failed'; readonly error: HeadwaterError; readonly attempt: WriteAttempt }

export const QUEUED: AppendState = { kind: 'queued' }
export const DISCARDED: AppendState = { kind: 'discarded' }
export const CONFLICTED: AppendState = { kind: 'conflicted' }

/** Publishes and acknowledges the written appends, and rejects the others, in order. */
export function settleAppends(entries: readonly AppendEntry[], target: AppendTarget): void {
  for (const { state } of entries) if (state.kind === 'written') target.onDurable(state)
  const { head } = target
  const tail = streamTailOf(head)
  for (const entry of entries) {
    const { state } = entry
    if (state.kind === 'written') {
      const { start, end } = state
      entry.listener.acked({ start, end, tail })
    } else if (state.kind === 'duplicate') {
      const { start, end } = state
      entry.listener.acked({ start, end, tail, duplicate: true })
    } else {
      const hasError = state.kind === 'failed' || state.kind === 'refused'
      rejectAppend(entry, hasError ? state.error : discardedError(entry.group?.failure))
    }
  }
}

export function rejectAppend({ group, listener }: AppendEntry, error: HeadwaterError): void {
  group?.fail(error)
  listener.failed(error)
}

/** How often an append is sequenced again because other engines were faster. */
const CONFLICTS_MAX = 100

/**
 * Recovers a pipeline after a conflict or a failure, when no write is in flight: settles the appends with a
 * known outcome, reads the head again, and leaves in `entries` those to sequence again, all queued. Appends
 * that are added to `entries` meanwhile stay behind them. Resolves to false, leaving none, if the head could
 * not be read.
 */
export async function recoverAppends(
  entries: AppendEntry[],
  target: AppendTarget,
  shared: boolean,
): Promise<boolean> {
  // A caller whose append fails may read at once, and finds what was stored.
  target.markStale()
  settleKnownOutcomes(entries, target, shared)
  // Before the head is read: it may be older than appends that are added meanwhile.
  for (const entry of entries) entry.sawReload = true
  const failure = await reloadFailure(target)
  if (failure !== undefined) {
    // None of them was written.
    for (const entry of entries.splice(0)) rejectAppend(entry, withoutEffects(failure))
    return false
  }
  settleRefusals(entries, target.head)
  requeue(entries)
  return true
}

async function reloadFailure(target: AppendTarget): Promise<HeadwaterError | undefined> {
  try {
    return (await target.reload()) ? undefined : deletedError()
  } catch (error) {
    return fromStorage(error)
  }
}

/** Removes and settles, wherever they stand, the appends whose outcome is known. */
function settleKnownOutcomes(entries: AppendEntry[], target: AppendTarget, shared: boolean): void {
  const outcomes = resolveAttempts(entries, shared)
  const known: AppendEntry[] = []
  let failure: (AppendState & { readonly kind: 'failed' }) | undefined
  const unknown = entries.filter((entry, index) => {
    const outcome = outcomes[index]!
    if (outcome === 'retry') return true
    const { state } = entry
    if (outcome === 'acknowledge' && state.kind === 'failed') {
      entry.state = state.attempt
      entry.state.kind = 'written'
    } else if (outcome === 'fail') {
      if (state.kind === 'failed') failure = state
      // It conflicted because of the failure.
      else if (failure !== undefined) entry.state = { ...failure, error: withoutEffects(failure.error) }
    } else if (outcome === 'discard') {
      entry.state = DISCARDED
    }
    // Before any is settled: a rejected caller may append to its group at once.
    if ('error' in entry.state) entry.group?.fail(entry.state.error)
    known.push(entry)
    return false
  })
  entries.splice(0, entries.length, ...unknown)
  settleAppends(known, target)
}

/** Rejects the refused appends at the front, while the storage has the head that they rest on. */
function settleRefusals(entries: AppendEntry[], head: Head): void {
  for (let first = entries[0]; first?.state.kind === 'refused'; first = entries[0]) {
    if (!isSameHead(identityOf(first.state.against), identityOf(head))) return
    entries.shift()
    rejectAppend(first, first.state.error)
  }
}

function requeue(entries: AppendEntry[]): void {
  const overtaken = entries.findIndex(({ state }) => state.kind === 'conflicted')
  for (const entry of entries) {
    entry.group?.reconsider(entry)
    entry.state = QUEUED
  }
  const first = entries[overtaken]
  if (first === undefined || ++first.conflicts < CONFLICTS_MAX) return
  entries.splice(overtaken, 1)
  rejectAppend(first, conflictError())
}
