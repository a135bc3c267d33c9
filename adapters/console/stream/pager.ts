import type { Stream } from '../../../src/api/stream.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { ReadQuery } from '../../../src/model/read-query.ts'
import { meteredBytesOf, type SequencedRecord } from '../../../src/model/record.ts'

/** The first record that is shown. */
export type Start = Pick<ReadQuery, 'seqNum' | 'timestamp' | 'tailOffset'>

/** How many records a page has, unless they exceed what one reply holds. */
export const PAGE_RECORDS = 500
/** How many records an opened position loads at least, because a reply holds few large ones. */
const VIEW_RECORDS = 25
/** The time after which a failure that may pass is tried again. */
const RETRY_MS = 2000
/** Reading gives way to the page this often. */
const WORK_MS = 12

/** The activity of a pager at the tail: none while it is `idle`. */
type PagerState =
  | { readonly kind: 'idle' | 'connecting' | 'live' }
  | { readonly kind: 'failed'; readonly error: Error }

/** A part of a stream, loaded page by page in both directions, and followed at the tail. */
export class Pager {
  readonly window = new RecordWindow()
  /** The tail as last known. */
  tail: number | undefined
  /** Whether the stream may have records before the window. */
  hasOlder = false
  /** Whether the stream may have records after the window. */
  hasNewer = false
  /** Whether the tail is not followed. */
  isPaused = false
  /** Whether the end is what is looked at. If not, no record is dropped for a new one. */
  isAtEnd = true
  /** Whether a page is being loaded. */
  isLoading = false
  state: PagerState = { kind: 'idle' }
  /** The start of a reader while the window is empty. */
  #start: Start = {}
  #olderRecords = PAGE_RECORDS
  #abort = new AbortController()
  readonly #stream: Stream
  readonly #onChange: () => void

  constructor(stream: Stream, onChange: () => void) {
    this.#stream = stream
    this.#onChange = onChange
  }

  /** The number of records between the window and the tail, as far as known. */
  get behind(): number {
    return Math.max(0, (this.tail ?? 0) - (this.window.end ?? this.tail ?? 0))
  }

  /** Shows another part of the stream: a page from a position, or the records before the tail, followed. */
  open(start: Start): void {
    this.window.clear()
    this.tail = undefined
    this.#olderRecords = PAGE_RECORDS
    this.hasOlder = start.seqNum !== 0
    this.hasNewer = false
    this.#start = start
    this.#restart()
    if (start.tailOffset !== undefined) this.#follow()
    else this.#load((signal) => this.#loadNewer(start, signal))
  }

  /** Loads the page before the window. Does nothing while another page is being loaded. */
  older(): void {
    if (this.hasOlder && this.window.held > 0) this.#load((signal) => this.#loadOlder(signal))
  }

  /** Loads the page after the window, and follows at the tail. Does nothing where it follows already. */
  newer(): void {
    if (this.state.kind !== 'idle') return
    const { end } = this.window
    const start = end === undefined ? this.#start : { seqNum: end }
    this.#load((signal) => this.#loadNewer(start, signal))
  }

  /** Ends the connection. */
  pause(): void {
    this.isPaused = true
    this.#restart()
  }

  /** Continues after the last record: none is skipped. */
  resume(): void {
    this.isPaused = false
    this.#restart()
    if (this.window.held === 0 && this.#start.tailOffset !== undefined) this.#follow()
    else this.newer()
  }

  close(): void {
    this.#abort.abort()
  }

  #set(state: PagerState): void {
    this.state = state
    this.#onChange()
  }

  /** Ends everything that runs. */
  #restart(): AbortSignal {
    this.#abort.abort()
    this.#abort = new AbortController()
    this.isLoading = false
    this.#set({ kind: 'idle' })
    return this.#abort.signal
  }

  #load(load: (signal: AbortSignal) => Promise<void>): void {
    if (this.isLoading) return
    const { signal } = this.#abort
    this.isLoading = true
    this.#onChange()
    load(signal).then(
      () => {
        if (signal.aborted) return
        this.isLoading = false
        this.#onChange()
      },
      (error) => this.#fail(error, signal),
    )
  }

  /** Shows an error, and continues after a while if it may pass: none is skipped. */
  #fail(error: Error, signal: AbortSignal): void {
    if (signal.aborted) return
    this.isLoading = false
    this.#set({ kind: 'failed', error })
    if (!HeadwaterError.is(error) || !error.retryable) return
    const timer = setTimeout(() => this.resume(), RETRY_MS)
    signal.addEventListener('abort', () => clearTimeout(timer))
  }

  #read(start: Start, count: number, signal: AbortSignal) {
    return this.#stream.readBatch({ ...start, count, clamp: true }, { as: 'bytes', signal })
  }

  #checkTail(signal: AbortSignal): void {
    this.#stream.checkTail({ signal }).then(
      ({ seqNum }) => {
        this.tail = seqNum
        this.#onChange()
      },
      // A token that permits only reads does not permit this.
      () => {},
    )
  }

  async #loadNewer(start: Start, signal: AbortSignal): Promise<void> {
    let next = start
    do {
      const { records, tail } = await this.#read(next, PAGE_RECORDS, signal)
      if (signal.aborted) return
      this.#append(records)
      if (tail !== undefined) this.tail = tail.seqNum
      if (records.length === 0 && tail !== undefined) this.#start = { seqNum: tail.seqNum }
      this.hasNewer = records.length > 0 && (tail === undefined || this.window.end! < tail.seqNum)
      next = { seqNum: this.window.end }
      this.#onChange()
    } while (this.hasNewer && this.window.held < VIEW_RECORDS)
    if (this.hasNewer) this.#checkTail(signal)
    // The tail is reached: what follows is new.
    else if (!this.isPaused) this.#follow()
  }

  async #loadOlder(signal: AbortSignal): Promise<void> {
    const first = this.window.first!
    for (;;) {
      const start = Math.max(0, first - this.#olderRecords)
      const { records } = await this.#read({ seqNum: start }, first - start, signal)
      if (signal.aborted) return
      const older = records.filter(({ seqNum }) => seqNum < first)
      const isAdjacent = older.length === 0 || older.at(-1)!.seqNum === first - 1
      if (!isAdjacent && this.#olderRecords > 1) {
        // One reply holds fewer of these records, and those next to the window come first.
        this.#olderRecords = Math.max(1, Math.min(older.length, this.#olderRecords - 1))
        continue
      }
      // A reply that starts later than it was asked for has the first record that remains.
      this.hasOlder = start > 0 && older[0]?.seqNum === start
      if (this.window.prepend(older)) {
        this.hasNewer = true
        this.#restart()
      }
      return
    }
  }

  #append(records: readonly SequencedRecord[]): void {
    const { first } = this.window
    this.window.append(records)
    if (first !== undefined && this.window.first !== first) this.hasOlder = true
    else if (this.window.first === 0) this.hasOlder = false
  }

  #follow(): void {
    const signal = this.#restart()
    this.hasNewer = false
    this.#set({ kind: 'connecting' })
    this.#readTail(signal).catch((error) => this.#fail(error, signal))
  }

  async #readTail(signal: AbortSignal): Promise<void> {
    const { window } = this
    const from: Start = window.end === undefined ? this.#start : { seqNum: window.end }
    let workSince = performance.now()
    for await (const event of this.#stream.follow(from, { as: 'bytes', signal }).events()) {
      if (signal.aborted) return
      const records = event.kind === 'batch' ? event.batch.records : []
      const { tail } = event.kind === 'batch' ? event.batch : event
      if (!this.isAtEnd && !window.hasRoomFor(records)) {
        this.hasNewer = true
        this.#checkTail(this.#restart())
        return
      }
      this.#append(records)
      if (tail !== undefined) {
        this.tail = tail.seqNum
        // A later read would count from a later tail, and miss the records between.
        const { tailOffset } = this.#start
        if (window.held === 0 && tailOffset !== undefined) {
          this.#start = { seqNum: Math.max(0, tail.seqNum - tailOffset) }
        }
      }
      this.#set({ kind: 'live' })
      workSince = await yieldToPage(workSince)
    }
  }
}

/** Gives way to the page if the work has lasted too long. Resolves to when the work began. */
export async function yieldToPage(workSince: number): Promise<number> {
  if (performance.now() - workSince <= WORK_MS) return workSince
  await new Promise((resolve) => setTimeout(resolve))
  return performance.now()
}

/** The most records that a window holds. */
const RECORDS_MAX = 5000
/** The most metered bytes that a window holds, unless a single record is larger. */
const BYTES_MAX = 32 * 1_048_576

type Filter = (record: SequencedRecord) => boolean

/**
 * Records in the order of their sequence numbers, up to {@link RECORDS_MAX} and {@link BYTES_MAX}: it grows
 * at both ends, and what exceeds the limits is dropped at the other one. A filter selects those that are
 * shown.
 */
export class RecordWindow {
  #records: readonly SequencedRecord[] = []
  #shown: readonly SequencedRecord[] = []
  #selects: Filter = () => true

  /** The selected records. */
  get shown(): readonly SequencedRecord[] {
    return this.#shown
  }

  /** How many records are held, selected or not. */
  get held(): number {
    return this.#records.length
  }

  /** Whether records can be added without dropping others. */
  hasRoomFor(records: readonly SequencedRecord[]): boolean {
    const all = [...this.#records, ...records]
    return countWithinLimits(all) === all.length
  }

  /** The first sequence number that is held; undefined if there is none. */
  get first(): number | undefined {
    return this.#records[0]?.seqNum
  }

  /** The sequence number after the last one that is held; undefined if there is none. */
  get end(): number | undefined {
    const last = this.#records.at(-1)
    return last && last.seqNum + 1
  }

  /** The position of a record among the selected ones; -1 if it is not one. */
  indexOf(seqNum: number | undefined): number {
    return this.#shown.findIndex((record) => record.seqNum === seqNum)
  }

  /** Adds later records. */
  append(records: readonly SequencedRecord[]): void {
    const all = [...this.#records, ...records]
    const dropped = all.length - countWithinLimits(all.toReversed())
    this.#hold(all.slice(dropped), [...this.#shown, ...records.filter(this.#selects)])
  }

  /** Adds earlier records. Returns whether later ones were dropped. */
  prepend(records: readonly SequencedRecord[]): boolean {
    const all = [...records, ...this.#records]
    this.#hold(all.slice(0, countWithinLimits(all)), [...records.filter(this.#selects), ...this.#shown])
    return this.held < all.length
  }

  /** Selects the records that a filter returns true for; all of them if there is none. */
  filter(selects: Filter = () => true): void {
    this.#selects = selects
    this.#shown = this.#records.filter(selects)
  }

  clear(): void {
    this.#hold([], [])
  }

  #hold(records: readonly SequencedRecord[], selected: readonly SequencedRecord[]): void {
    this.#records = records
    const { first = 0, end = 0 } = this
    this.#shown = selected.filter(({ seqNum }) => seqNum >= first && seqNum < end)
  }
}

/** How many of these records, from the first one, a window can hold: one in any case. */
function countWithinLimits(records: readonly SequencedRecord[]): number {
  let bytes = 0
  const excess = records.findIndex(({ headers, body }, index) => {
    bytes += meteredBytesOf(headers, body)
    return index > 0 && (index >= RECORDS_MAX || bytes > BYTES_MAX)
  })
  return excess === -1 ? records.length : excess
}
