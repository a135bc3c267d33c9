import { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import type { AppendAck } from '../../src/model/info.ts'
import {
  assertMembers,
  assertSignal,
  hasMethod,
  type Members,
  type MembersOf,
  oneOf,
} from '../../src/model/validation.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { asHeadwaterError } from '../../src/sync/failures.ts'
import {
  type AfterRefusal,
  type FailedAppend,
  type OutboxStatus,
  outboxInput,
} from '../../src/sync/outbox.ts'
import { type Confirmation, entryRecords, isWaiting } from '../../src/sync/outbox-log.ts'
import { browserWakeUps, StateCell, type WakeUps } from './activity.ts'
import { type Coordinator, coordinate } from './coordinator.ts'
import { OutboxLog } from './outbox-log.ts'
import { OutboxSender } from './outbox-sender.ts'

/** Options of `outbox`. */
export interface OutboxOptions {
  /** How many records may wait for the server, at least 1. 100,000 by default. */
  readonly recordsMax?: number | undefined
  /** How many metered bytes of records may wait for the server, at least 1 MiB. 64 MiB by default. */
  readonly bytesMax?: number | undefined
  /** Whether records wait behind a parked one (`stop`, the default) or are sent (`continue`). */
  readonly afterRefusal?: AfterRefusal | undefined
  /** Closes the outbox when it aborts. */
  readonly signal?: AbortSignal | undefined
  /**
   * Returns random numbers in [0, 1), for pauses between attempts, ids and nonces. For tests: by default, ids
   * and nonces are secure random numbers, so that other writers of the stream cannot guess them.
   */
  readonly random?: (() => number) | undefined
  /** @internal Elects the outbox that sends. By default among the tabs of a browser. */
  readonly coordinator?: Coordinator | undefined
  /** @internal What ends a pause between attempts early. By default the events of a browser. */
  readonly wakeUps?: WakeUps | undefined
}

export const OUTBOX_OPTIONS: MembersOf<OutboxOptions> = {
  recordsMax: 'number',
  bytesMax: 'number',
  afterRefusal: oneOf(['stop', 'continue']),
  signal: assertSignal,
  random: 'function',
  coordinator: 'function',
  wakeUps: 'function',
}

/** Throws `invalid` for options that are not valid. */
export function assertOutboxOptions(options: OutboxOptions, members: Members = OUTBOX_OPTIONS): void {
  assertMembers(options, members, 'options')
  assertLeast('recordsMax', options.recordsMax, 1)
  assertLeast('bytesMax', options.bytesMax, 2 ** 20)
}

/** Throws `invalid` for a number that is less than another one. */
export function assertLeast(field: string, value: number | undefined, least: number): void {
  if (value === undefined || value >= least) return
  throw invalid(`\`${field}\` must be at least ${least}, not ${value}`, field)
}

const assertStream = hasMethod('openCursor', 'a stream')

/** Throws `invalid` unless both are streams, and not the same one. */
export function assertEnds(remote: Stream, local: Stream): void {
  assertStream(remote, 'remote')
  assertStream(local, 'local')
  if (remote.equals(local)) throw invalid('`remote` and `local` are the same stream', 'local')
}

type Outcome = Confirmation | HeadwaterError

/** @internal What a mirror needs of the outbox that it lets send. */
export type MirrorOutbox = Pick<Outbox, 'run' | 'log'>

/** An append that is durable on this device. */
export interface OutboxAppend {
  /** The number of the first record in the outbox. The others have the numbers that follow. */
  readonly number: number
  /**
   * Resolves to the positions of the records on the server. Rejects with the error of the batch if it is
   * parked and discarded, with `closed` if the outbox is closed before, with the failure of the local storage
   * if the outbox can no longer read its log, and with `outcome_unknown` if another tab has sent or discarded
   * the batch while this one was frozen for so long that the outcome is no longer in the log.
   */
  confirmed(options?: CallOptions): Promise<Pick<AppendAck, 'start' | 'end'>>
}

/**
 * Records that are durable on this device and are sent to a remote stream, each exactly once and in order.
 * Returned by {@link outbox}. Tabs share the log of the outbox; one of them sends.
 *
 * Each record on the server has the header `headwater-origin` (docs/protocol.md "Origin header").
 */
export class Outbox {
  readonly #remote: Stream
  readonly #options: OutboxOptions
  readonly #copy: Stream | undefined
  /** @internal */
  readonly log: OutboxLog
  readonly #closing = new AbortController()
  readonly #state = new StateCell<OutboxStatus>({ kind: 'idle' })
  /** Calls that wait for the outcome of an entry, by its number. */
  readonly #waiting = new Map<number, (outcome: Outcome) => void>()
  /** Outcomes of entries that other tabs have sent before the number of an append is known here. */
  readonly #early = new Map<number, Outcome>()
  /** Appends under way, which the state does not include yet. */
  readonly #reserved = { records: 0, bytes: 0 }
  readonly #running = new Set<Promise<void>>()
  #ignoreSignals = () => {}

  /** @internal Records appear in the `copy` of the remote stream, if there is one, before they leave. */
  constructor(local: Stream, remote: Stream, options: OutboxOptions, copy?: Stream) {
    this.#remote = remote
    this.#options = options
    this.#copy = copy
    const settle = (number: number, outcome: Outcome) => {
      const waiting = this.#waiting.get(number)
      if (waiting === undefined && this.#reserved.records > 0) this.#early.set(number, outcome)
      waiting?.(outcome)
      this.#waiting.delete(number)
    }
    const settleBelow = (before: number, error: HeadwaterError) => {
      for (const number of this.#waiting.keys()) if (number < before) settle(number, error)
    }
    this.log = new OutboxLog(local, options.random, this.#closing.signal, {
      confirmed: settle,
      // Only parked entries can be discarded.
      discarded: ({ number, error }) => settle(number, error!),
      missed: (before) => settleBelow(before, missedError()),
    })
    this.log.subscribe(() => {
      // Outcomes that are known count also after the end.
      if (this.log.end !== undefined) settleBelow(Number.POSITIVE_INFINITY, this.log.end)
    })
    this.#ignoreSignals = onAnyAbort([options.signal, local.context.closing], () => void this.close())
  }

  /** @internal Aborts when the outbox is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /** The current state. */
  get state(): OutboxStatus {
    return this.#state.current
  }

  /** Emits the current state, then each change. Completes when the outbox is closed. */
  get state$(): Observable<OutboxStatus> {
    return this.#state.states$
  }

  /** The parked batches, in the order of their numbers. None until the outbox is loaded. */
  get failed(): readonly FailedAppend[] {
    // What was parked may have been discarded since.
    if (this.log.device === undefined) return []
    return [...this.log.state.entries.values()].flatMap(({ number, error, records }) =>
      error === undefined ? [] : [{ number, error, records }],
    )
  }

  /** Emits the parked batches, and again when they change. Completes when the outbox is closed. */
  get failed$(): Observable<readonly FailedAppend[]> {
    return new Observable((subscriber) => {
      let before: readonly FailedAppend[] | undefined
      const emit = () => {
        const { failed } = this
        const isSame =
          failed.length === before?.length && failed.every((one, i) => one.error === before![i]!.error)
        if (!isSame) subscriber.next(failed)
        before = failed
        if (this.#closing.signal.aborted) subscriber.complete()
      }
      emit()
      return this.log.subscribe(emit)
    })
  }

  /**
   * Appends one record, or a batch of records, which the server stores as a whole. Resolves when the batch is
   * durable on this device.
   *
   * Errors:
   * - `invalid` for records that break a rule or a limit, for command records and for reserved headers
   * - `outbox_full` when `recordsMax` or `bytesMax` is reached
   * - `storage`, `storage_full` when the local storage fails
   * - `closed` once the outbox is closed
   *
   * ```ts
   * const appended = await box.append('written offline')
   * const { start } = await appended.confirmed()
   * ```
   */
  async append(records: RecordInput | readonly RecordInput[], options?: CallOptions): Promise<OutboxAppend> {
    const signal = signalOf(options)
    signal?.throwIfAborted()
    this.#closing.signal.throwIfAborted()
    const { records: input, meteredBytes } = outboxInput(records)
    if (this.log.device === undefined) {
      // What waits is known only then. Every call passes a signal: a wait without one would resume earlier.
      await this.log.until(() => this.log.device !== undefined, signal ?? this.#closing.signal)
    }
    const release = this.#reserve(input.length, meteredBytes)
    let settle: (outcome: Outcome) => void = () => {}
    const outcome = new Promise<Outcome>((resolve) => {
      settle = resolve
    })
    let number: number | undefined
    try {
      await this.log.append(entryRecords(input, this.log.newNonce()), { signal }, (stored) => {
        number = stored
        this.#waiting.set(number, settle)
      })
      const entry = this.log.state.entries.get(number!)
      const known = entry === undefined ? missedError() : entry.confirmation
      const early = this.#early.get(number!) ?? known
      if (early !== undefined) settle(early)
      // Appends get their numbers in order.
      for (const before of this.#early.keys()) if (before <= number!) this.#early.delete(before)
    } catch (error) {
      // The batch is durable, even if the outbox ends before it has read it back.
      if (number === undefined || signal?.aborted) throw error
      if (this.log.end !== undefined) settle(this.log.end)
    } finally {
      release()
      if (this.#reserved.records === 0) this.#early.clear()
    }
    return {
      number: number!,
      confirmed: async (waiting) => {
        const settled = await unlessAborted(signalOf(waiting), outcome)
        if (HeadwaterError.is(settled)) throw settled
        return settled
      },
    }
  }

  /**
   * Sends a parked batch again, before all batches that wait. With `afterRefusal: 'continue'`, later batches
   * may have been sent already, and then precede it on the server. Resolves when the decision is durable on
   * this device.
   *
   * Rejects with `invalid` if there is no parked batch with this number, and with the errors of `append`.
   */
  async retry(number: number, options?: CallOptions): Promise<void> {
    await this.log.decide('retry', number, signalOf(options))
  }

  /**
   * Discards a parked batch: `confirmed()` of its append rejects with the error of the batch. Resolves when
   * the decision is durable on this device.
   *
   * Rejects with `invalid` if there is no parked batch with this number, and with the errors of `append`.
   */
  async discard(number: number, options?: CallOptions): Promise<void> {
    await this.log.decide('discard', number, signalOf(options))
  }

  /** Resolves when no record waits for the server, except parked records and those behind them. */
  async flush(options?: CallOptions): Promise<void> {
    await this.log.until(() => this.isFlushed, signalOf(options))
  }

  /** @internal Whether no record waits for the server, as far as the log was read. */
  get isFlushed(): boolean {
    const { afterRefusal = 'stop' } = this.#options
    // Until the log was read, it is not known what waits.
    if (this.log.device === undefined) return false
    for (const entry of this.log.state.entries.values()) {
      if (isWaiting(entry)) return false
      if (entry.error !== undefined && afterRefusal === 'stop') return true
    }
    return true
  }

  /**
   * @internal Sends until the signal aborts, or until only the app can continue. Calls `onSent` after each
   * batch.
   */
  async run(signal: AbortSignal, onSent?: () => void): Promise<void> {
    const { afterRefusal = 'stop', random = Math.random, wakeUps = browserWakeUps } = this.#options
    const sending = new AbortController()
    const ignore = onAnyAbort([signal, this.#closing.signal], () => sending.abort())
    const streams = { log: this.log, remote: this.#remote, copy: this.#copy }
    const onState = (state: OutboxStatus) => sending.signal.aborted || this.#state.set(state)
    const context = { ...streams, random, wakeUps, afterRefusal, onSent, onState }
    const running = new OutboxSender(context, sending.signal).run()
    this.#running.add(running)
    await running
    this.#running.delete(running)
    ignore()
    if (this.#running.size === 0 && !this.#closing.signal.aborted && sending.signal.aborted)
      this.#state.set({ kind: 'idle' })
  }

  /** Ends the outbox. Pending records stay on this device. Neither stream is closed. */
  async close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    this.#ignoreSignals()
    this.#closing.abort(new HeadwaterError('closed', 'the outbox is closed'))
    await unlessAborted(signal, Promise.allSettled([...this.#running]))
    this.#state.end({ kind: 'closed' })
  }

  /** Closes the outbox for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal Sends while this outbox is the elected one of those on the same log. */
  async sendWhileElected(coordinator: Coordinator): Promise<void> {
    const { signal } = this.#closing
    try {
      await this.log.loaded()
      let term: AbortController | undefined
      const onElected = (isElected: boolean) => {
        term?.abort()
        term = isElected ? new AbortController() : undefined
        if (term !== undefined) void this.run(term.signal)
      }
      const membership = coordinator(`headwater outbox ${this.log.identity}`, {
        onElected,
        onMessage: () => {},
      })
      onAbort(signal, () => membership.leave())
    } catch (error) {
      if (!signal.aborted) this.#state.set({ kind: 'stopped', error: asHeadwaterError(error) })
    }
  }

  /**
   * Reserves room for records until the returned function is called. Throws `outbox_full` if there is none.
   */
  #reserve(records: number, bytes: number): () => void {
    const { recordsMax = 100_000, bytesMax = 64 * 2 ** 20 } = this.#options
    const { state } = this.log
    assertRoom('records', state.records + this.#reserved.records, records, recordsMax)
    assertRoom('bytes', state.meteredBytes + this.#reserved.bytes, bytes, bytesMax)
    this.#reserved.records += records
    this.#reserved.bytes += bytes
    return () => {
      this.#reserved.records -= records
      this.#reserved.bytes -= bytes
    }
  }
}

/**
 * Sends records appended on this device to a remote stream, each exactly once and in order, even if requests
 * are lost, delayed or repeated. `local` is a stream of an engine on this device that only the outbox uses;
 * `remote` is one of a client.
 *
 * Throws `invalid` for options that are not valid.
 *
 * ```ts
 * const box = outbox(hw.basin('my-app').stream('outbox'), server.basin('my-app').stream('events'))
 * await box.append('written offline')
 * await box.flush()
 * ```
 */
export function outbox(local: Stream, remote: Stream, options: OutboxOptions = {}): Outbox {
  assertOutboxOptions(options)
  assertEnds(remote, local)
  const box = new Outbox(local, remote, options)
  void box.sendWhileElected(options.coordinator ?? coordinate)
  return box
}

function missedError(): HeadwaterError {
  return new HeadwaterError('outcome_unknown', 'another tab has sent or discarded the batch')
}

function assertRoom(unit: string, waiting: number, added: number, most: number): void {
  if (waiting + added <= most) return
  throw new HeadwaterError('outbox_full', `${waiting} ${unit} wait for the server; \`${unit}Max\` is ${most}`)
}
