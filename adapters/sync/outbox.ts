import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { Observable as ObservableClass } from '../../src/runtime/observable.ts'
import { asHeadwaterError } from '../../src/sync/errors.ts'
import { outboxInput } from '../../src/sync/outbox-input.ts'
import { batchRecords, type Confirmation, type OutboxEntry } from '../../src/sync/outbox-log.ts'
import type { SenderState } from '../../src/sync/outbox-plan.ts'
import type { FailedAppend, OutboxStatus } from '../../src/sync/outbox-status.ts'
import { markOf, type OutboxContent } from '../../src/sync/overlay.ts'
import { type Coordinator, coordinate } from './coordinator.ts'
import { newNonce, OutboxLog } from './outbox-log.ts'
import { assertOutboxOptions, type OutboxOptions } from './outbox-options.ts'
import { browserWakeUps } from './page-events.ts'
import { type PauseContext, withRetries } from './pause.ts'
import type { PendingEntry } from './pending-source.ts'
import { StateCell } from './state-cell.ts'
import { assertEnds } from './synced-ends.ts'

export type { OutboxOptions } from './outbox-options.ts'

/** The code that sends, and that decides about parked batches. */
const SENDER = new LazyModule('the code that sends', () => import('./outbox-sender.ts'))

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
  confirmed(options?: CallOptions): Promise<Confirmation>
}

/**
 * Records that are durable on this device and are sent to a remote stream, each exactly once and in order.
 * Returned by {@link outbox}. Tabs share the log of the outbox; one of them sends.
 *
 * Each record on the server has the header `headwater-origin` (docs/protocol.md "Origin header").
 */
export class Outbox {
  readonly #local: Stream
  readonly #remote: Stream
  readonly #options: OutboxOptions
  /** @internal */
  readonly log: OutboxLog
  readonly #closing = new AbortController()
  readonly #state = new StateCell<OutboxStatus>({ kind: 'idle' })
  /** Calls that wait for the outcome of an entry, by its number. */
  readonly #waiting = new Map<number, (outcome: Confirmation | HeadwaterError) => void>()
  readonly #items = new WeakMap<OutboxEntry, OutboxContent<PendingEntry>['waiting']>()
  readonly #running = new Set<Promise<void>>()
  #content: OutboxContent<PendingEntry> | undefined
  /** Appends under way, which the state does not include yet. */
  readonly #reserved = { records: 0, bytes: 0 }
  /** Outcomes of entries that other tabs have sent, while the numbers of appends are not known here yet. */
  readonly #early = new Map<number, Confirmation | HeadwaterError>()
  #ignoreSignals = () => {}

  /** @internal */
  constructor(local: Stream, remote: Stream, options: OutboxOptions) {
    this.#local = local
    this.#remote = remote
    this.#options = options
    const settle = (number: number, outcome: Confirmation | HeadwaterError) => {
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
      this.#content = undefined
      // Outcomes that are known count also after the end.
      if (this.log.end !== undefined) settleBelow(Number.POSITIVE_INFINITY, this.log.end)
    })
    this.#ignoreSignals = onAnyAbort([options.signal, local.context.closing], () => void this.close())
  }

  /** @internal */
  get device(): string | undefined {
    return this.log.device
  }

  /** @internal Resolves when the log was read up to what it had. */
  get loaded(): Promise<void> {
    return this.log.eventually(() => this.device !== undefined)
  }

  /** The current state. */
  get state(): OutboxStatus {
    return this.#state.current
  }

  /** Emits the current state, then each change. Completes when the outbox is closed. */
  get state$(): Observable<OutboxStatus> {
    return this.#state.states$
  }

  /** The parked batches, in the order of their numbers. */
  get failed(): readonly FailedAppend[] {
    return [...this.log.state.entries.values()].flatMap(({ number, error, records }) =>
      error === undefined ? [] : [{ number, error, records }],
    )
  }

  /** Emits the parked batches, and again when they change. Completes when the outbox is closed. */
  get failed$(): Observable<readonly FailedAppend[]> {
    return new ObservableClass((subscriber) => {
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

  /** @internal */
  get content(): OutboxContent<PendingEntry> {
    this.#content ??= this.#contentNow()
    return this.#content
  }

  /** @internal */
  subscribe(onChange: () => void): () => void {
    return this.log.subscribe(onChange)
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
    if (this.device === undefined) {
      // What waits is known only then. Every call passes a signal: a wait without one would resume earlier.
      await this.log.until(() => this.device !== undefined, signal ?? this.#closing.signal)
    }
    const release = this.#reserve(input.length, meteredBytes)
    const { random } = this.#options
    let settle: (outcome: Confirmation | HeadwaterError) => void = () => {}
    const outcome = new Promise<Confirmation | HeadwaterError>((resolve) => {
      settle = resolve
    })
    let number: number | undefined
    try {
      await this.log.appendEntry(batchRecords(input, newNonce(random)), meteredBytes, signal, (stored) => {
        number = stored
        this.#waiting.set(number, settle)
      })
      if (!this.log.state.entries.has(number!)) {
        settle(this.#early.get(number!) ?? missedError())
        this.#waiting.delete(number!)
      }
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
    return (await SENDER.load()).retryParked(this.log, number, signalOf(options))
  }

  /**
   * Discards a parked batch: `confirmed()` of its append rejects with the error of the batch. Resolves when
   * the decision is durable on this device.
   *
   * Rejects with `invalid` if there is no parked batch with this number, and with the errors of `append`.
   */
  async discard(number: number, options?: CallOptions): Promise<void> {
    return (await SENDER.load()).discardParked(this.log, number, signalOf(options))
  }

  /** Resolves when no record waits for the server, except parked records and those behind them. */
  async flush(options?: CallOptions): Promise<void> {
    await this.log.until(() => this.isFlushed, signalOf(options))
  }

  /** @internal Whether no record waits for the server, as far as the log was read. */
  get isFlushed(): boolean {
    const { afterRefusal = 'stop' } = this.#options
    // Until the log was read, it is not known what waits.
    if (this.device === undefined) return false
    const entries = [...this.log.state.entries.values()]
    if (afterRefusal === 'continue') return entries.every(({ error }) => error !== undefined)
    return entries.length === 0 || entries[0]!.error !== undefined
  }

  /** @internal Sends until the signal aborts, or until only the app can continue. */
  async run(signal: AbortSignal): Promise<void> {
    const running = this.#send(signal)
    this.#running.add(running)
    await running.finally(() => this.#running.delete(running))
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
      await this.loaded
      const identity = await withRetries(() => this.#local.identity(), this.#pauses, signal)
      let term: AbortController | undefined
      const membership = coordinator(`headwater outbox ${identity}`, {
        onElected: (isElected) => {
          term?.abort()
          term = undefined
          if (!isElected) return
          term = new AbortController()
          void this.run(term.signal)
        },
        onMessage: () => {},
      })
      onAbort(signal, () => membership.leave())
    } catch (error) {
      this.#show({ kind: 'stopped', error: asHeadwaterError(error) }, signal)
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { afterRefusal = 'stop', examined, isCopyLive, onSent } = this.#options
    const sending = new AbortController()
    const ignore = onAnyAbort([signal, this.#closing.signal], () => sending.abort())
    // Keeps the listener that all callbacks share, which each batch would add and remove.
    const dropListener = onAbort(sending.signal, () => {})
    const onState = (state: SenderState) => this.#show(state, sending.signal)
    const context = {
      ...this.#pauses,
      log: this.log,
      remote: this.#remote,
      examined: examined ?? this.#remote,
      isCopyLive,
      afterRefusal,
      onSent,
      onState,
    }
    try {
      const { OutboxSender } = await withRetries(() => SENDER.load(), context, sending.signal)
      await new OutboxSender(context, sending.signal).run()
    } catch (error) {
      onState({ kind: 'stopped', error: asHeadwaterError(error) })
    } finally {
      if (sending.signal.aborted && !this.#closing.signal.aborted) this.#state.set({ kind: 'idle' })
      ignore()
      dropListener()
    }
  }

  get #pauses(): PauseContext {
    const { random = Math.random, wakeUps = browserWakeUps } = this.#options
    const { clock } = this.#local.context
    return { clock, random, wakeUps, onState: (state) => this.#show(state, this.#closing.signal) }
  }

  #show(state: SenderState, signal: AbortSignal): void {
    if (!signal.aborted) this.#state.set(state)
  }

  /**
   * Reserves room for records until the returned function is called. Throws `outbox_full` if there is none.
   */
  #reserve(records: number, bytes: number): () => void {
    const { recordsMax = 100_000, bytesMax = 64 * 2 ** 20 } = this.#options
    const { load } = this.log
    assertRoom('records', load.records + this.#reserved.records, records, recordsMax)
    assertRoom('bytes', load.meteredBytes + this.#reserved.bytes, bytes, bytesMax)
    this.#reserved.records += records
    this.#reserved.bytes += bytes
    return () => {
      this.#reserved.records -= records
      this.#reserved.bytes -= bytes
    }
  }

  #contentNow(): OutboxContent<PendingEntry> {
    const { entries, parts, progress, next, discarded } = this.log.state
    const waiting: OutboxContent<PendingEntry>['waiting'][number][] = []
    for (const entry of entries.values()) for (const item of this.#itemsOf(entry)) waiting.push(item)
    const known = parts[0]?.seqNum ?? next
    return { waiting, examined: progress?.position ?? 0, known, discarded }
  }

  #itemsOf(entry: OutboxEntry): OutboxContent<PendingEntry>['waiting'] {
    const known = this.#items.get(entry)
    if (known !== undefined) return known
    const { number: batch, records, error } = entry
    const items = records.map((record) => {
      const number = record.seqNum
      return { number, batch, mark: markOf({ number, nonce: record.nonce }), item: { record, error } }
    })
    this.#items.set(entry, items)
    return items
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
