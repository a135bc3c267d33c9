import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import { appendBatch, ownBytes, type RecordInput } from '../../src/model/append-input.ts'
import { isCommandShaped } from '../../src/model/command.ts'
import { HeadwaterError, invalid } from '../../src/model/errors.ts'
import type { Header } from '../../src/model/record.ts'
import { unlessAborted } from '../../src/runtime/abort.ts'
import { ORIGIN_HEADER } from '../../src/sync/origin.ts'
import {
  batchRecords,
  type Confirmation,
  discardRecord,
  ORIGIN_METERED_BYTES,
  OUTBOX_HEADER,
  type OutboxEntry,
  retryRecord,
} from '../../src/sync/outbox-log.ts'
import type { AfterRefusal } from '../../src/sync/outbox-plan.ts'
import type { OutboxContent } from '../../src/sync/overlay.ts'
import { OutboxLog } from './outbox-log.ts'
import { OutboxSender, type SenderState } from './outbox-sender.ts'
import { browserWakeUps, type WakeUps } from './page-events.ts'
import type { PendingEntry, PendingSource } from './pending-source.ts'
import { StateCell } from './state-cell.ts'

/** The state of an outbox. */
export type OutboxStatus = SenderState | { readonly kind: 'closed' }

/** Records that the server refused. */
export interface FailedAppend {
  readonly number: number
  readonly error: HeadwaterError
  readonly records: OutboxEntry['records']
}

export interface OutboxAppend {
  readonly number: number
  confirmed(options?: CallOptions): Promise<Confirmation>
}

export interface OutboxOptions {
  readonly recordsMax?: number | undefined
  readonly bytesMax?: number | undefined
  readonly afterRefusal?: AfterRefusal | undefined
  readonly signal?: AbortSignal | undefined
  readonly random?: (() => number) | undefined
  readonly examined?: Stream | undefined
  readonly wakeUps?: WakeUps | undefined
}

type Settled = { readonly confirmation: Confirmation } | { readonly error: HeadwaterError }

export class Outbox implements PendingSource {
  readonly #log: OutboxLog
  readonly #remote: Stream
  readonly #options: OutboxOptions
  readonly #closing = new AbortController()
  readonly #state = new StateCell<OutboxStatus>({ kind: 'idle' })
  readonly #settled = new Map<number, (settled: Settled) => void>()
  readonly #local: Stream
  #content: OutboxContent<PendingEntry> | undefined
  readonly #items = new WeakMap<OutboxEntry, readonly { number: number; item: PendingEntry }[]>()

  constructor(local: Stream, remote: Stream, options: OutboxOptions = {}) {
    this.#local = local
    this.#remote = remote
    this.#options = options
    const { random = Math.random } = options
    const device = () =>
      Array.from(
        { length: 22 },
        () => 'abcdefghijklmnopqrstuvwxyz0123456789'[Math.floor(random() * 36)],
      ).join('')
    this.#log = new OutboxLog(local, device, this.#closing.signal, {
      confirmed: (number, confirmation) => this.#settle(number, { confirmation }),
      discarded: (number) =>
        this.#settle(number, {
          error: new HeadwaterError('other', 'the record was discarded', { mayHaveEffects: false }),
        }),
    })
    this.#log.subscribe(() => {
      this.#content = undefined
    })
  }

  get device(): string | undefined {
    return this.#log.state.progress?.device
  }

  get state(): OutboxStatus {
    return this.#state.current
  }

  get state$(): Observable<OutboxStatus> {
    return this.#state.states$
  }

  get failed(): readonly FailedAppend[] {
    return [...this.#log.state.entries.values()].flatMap(({ number, error, records }) =>
      error === undefined ? [] : [{ number, error, records }],
    )
  }

  get content(): OutboxContent<PendingEntry> {
    this.#content ??= this.#contentNow()
    return this.#content
  }

  subscribe(onChange: () => void): () => void {
    return this.#log.subscribe(onChange)
  }

  async append(records: RecordInput | readonly RecordInput[], options?: CallOptions): Promise<OutboxAppend> {
    const signal = signalOf(options)
    const batch = appendBatch(records)
    ownBytes(batch)
    for (const { headers } of batch.records) {
      if (isCommandShaped(headers)) throw invalid('an outbox cannot send command records', 'records')
    }
    const { recordsMax = 100_000, bytesMax = 64 * 2 ** 20 } = this.#options
    const { state } = this.#log
    const count = state.records + batch.records.length
    if (count > recordsMax)
      throw new HeadwaterError(
        'rate_limited',
        `the outbox has ${state.records} records; the limit is ${recordsMax}`,
      )
    if (state.meteredBytes + batch.meteredBytes > bytesMax)
      throw new HeadwaterError('rate_limited', `the outbox is full; the limit is ${bytesMax} bytes`)
    const ack = await this.#log.append(batchRecords(batch.records as never), signal)
    const number = ack.start.seqNum
    const settled = new Promise<Settled>((resolve) => this.#settled.set(number, resolve))
    return {
      number,
      confirmed: async (waiting) => {
        const result = await unlessAborted(signalOf(waiting), settled)
        if ('error' in result) throw result.error
        return result.confirmation
      },
    }
  }

  async retry(number: number): Promise<void> {
    await this.#log.append([retryRecord(number)])
  }

  async discard(number: number): Promise<void> {
    await this.#log.append([discardRecord(number)])
  }

  async flush(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    await this.#log.until(
      () => [...this.#log.state.entries.values()].every(({ error }) => error !== undefined),
      signal,
    )
  }

  /** Runs the sender until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const {
      afterRefusal = 'stop',
      random = Math.random,
      examined = this.#remote,
      wakeUps = browserWakeUps,
    } = this.#options
    const running = AbortSignal.any([signal, this.#closing.signal])
    const sender = new OutboxSender(
      {
        log: this.#log,
        remote: this.#remote,
        examined,
        afterRefusal,
        random,
        wakeUps,
        clock: this.#local.context.clock,
        onState: (state) => this.#state.set(state),
      },
      running,
    )
    try {
      await sender.run()
    } catch (error) {
      if (!running.aborted) this.#state.set({ kind: 'stopped', error: error as HeadwaterError })
    }
  }

  async close(): Promise<void> {
    this.#closing.abort(new HeadwaterError('closed', 'the outbox is closed'))
    this.#state.end({ kind: 'closed' })
  }

  #settle(number: number, settled: Settled): void {
    this.#settled.get(number)?.(settled)
    this.#settled.delete(number)
  }

  #contentNow(): OutboxContent<PendingEntry> {
    const { entries, progress, next, discarded } = this.#log.state
    const waiting = [...entries.values()].flatMap((entry) => this.#itemsOf(entry))
    return { waiting, examined: progress?.position ?? 0, known: next, discarded }
  }

  #itemsOf(entry: OutboxEntry): readonly { number: number; item: PendingEntry }[] {
    let items = this.#items.get(entry)
    if (items === undefined) {
      items = entry.records.map((record) => ({ number: record.seqNum, item: { record, error: entry.error } }))
      this.#items.set(entry, items)
    }
    return items
  }
}

export const RESERVED: readonly string[] = [OUTBOX_HEADER, ORIGIN_HEADER]
export type { Header }
export { ORIGIN_METERED_BYTES }
