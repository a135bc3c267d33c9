import type { Stream } from '../../../src/api/stream.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { Connection } from '../connection.ts'
import type { CurlTarget } from '../snippets.ts'
import { RecordWindow } from './record-window.ts'
import { yieldToPage } from './tail.ts'

/** A search pauses when it has found so many records or more; it can be continued. */
const FOUND_MAX = 1000
/** A search from the newest record on reads so many records, then those before them. */
const PAGE_RECORDS = 1000

/** Whether a search begins with the first record or with the last one. */
export type SearchOrder = 'newest' | 'oldest'

/** A search through a whole stream, up to the tail of the moment when it began. */
export class StreamSearch {
  readonly order: SearchOrder
  /** The records that were found. */
  readonly found = new RecordWindow()
  state: 'running' | 'done' | 'limited' | 'cancelled' | 'failed' = 'running'
  error: Error | undefined
  /** How many records were looked at, and how many there are. */
  scanned = 0
  total = 0
  /** Where a search continues: its next record or, from the newest on, the end of what is left. */
  next: number | undefined
  /** Records per second. */
  rate = 0
  readonly #abort = new AbortController()
  readonly #selects: (record: SequencedRecord) => boolean
  readonly #onChange: () => void

  /** @param from Where an earlier search ended; undefined begins. */
  constructor(
    connection: Connection,
    { basin, stream, encryptionKey }: CurlTarget,
    order: SearchOrder,
    from: number | undefined,
    selects: (record: SequencedRecord) => boolean,
    onChange: () => void,
  ) {
    this.order = order
    this.next = from
    this.#selects = selects
    this.#onChange = onChange
    const handle = connection.hw.basin(basin).stream(stream, { encryptionKey })
    this.#run(handle).then(
      (state) => this.#end(state),
      (error) => {
        this.error = error
        this.#end('failed')
      },
    )
  }

  /** How much of the stream was searched, from 0 to 1. */
  get part(): number {
    return this.total === 0 ? 1 : this.scanned / this.total
  }

  cancel(): void {
    if (this.state === 'running') this.#end('cancelled')
    this.#abort.abort()
  }

  async #run(stream: Stream): Promise<StreamSearch['state']> {
    const { signal } = this.#abort
    const tail = (await stream.checkTail({ signal })).seqNum
    const { records } = await stream.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes', signal })
    const first = records[0]?.seqNum ?? tail
    const isForward = this.order === 'oldest'
    const [start, end] = isForward ? [Math.max(this.next ?? 0, first), tail] : [first, this.next ?? tail]
    this.total = Math.max(0, end - start)
    const started = performance.now()
    let workSince = started
    const pages = isForward ? forwards(stream, start, end, signal) : backwards(stream, start, end, signal)
    for await (const page of pages) {
      const selected = page.records.filter(this.#selects)
      if (!this.found.hasRoomFor(selected)) return 'limited'
      if (isForward) this.found.append(selected)
      else this.found.prepend(selected)
      this.next = isForward ? page.end : page.start
      this.scanned = isForward ? page.end - start : end - page.start
      this.rate = Math.round((this.scanned * 1000) / Math.max(1, performance.now() - started))
      workSince = await yieldToPage(workSince)
      this.#onChange()
      if (this.found.held >= FOUND_MAX && this.scanned < this.total) return 'limited'
    }
    return 'done'
  }

  #end(state: StreamSearch['state']): void {
    if (this.state !== 'running') return
    this.state = state
    this.#onChange()
  }
}

/** Records, and the sequence numbers that were looked at for them; `end` is exclusive. */
interface Page {
  readonly start: number
  readonly end: number
  readonly records: readonly SequencedRecord[]
}

async function* forwards(
  stream: Stream,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Page, void, undefined> {
  if (start >= end) return
  for await (const { records } of stream
    .read({ seqNum: start, count: end - start, clamp: true }, { as: 'bytes', signal })
    .batches()) {
    const within = records.filter(({ seqNum }) => seqNum < end)
    const last = records.at(-1)
    if (last !== undefined) yield { start, end: Math.min(last.seqNum + 1, end), records: within }
  }
}

async function* backwards(
  stream: Stream,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Page, void, undefined> {
  for (let pageEnd = end; pageEnd > start; ) {
    const pageStart = Math.max(start, pageEnd - PAGE_RECORDS)
    const records: SequencedRecord[] = []
    for await (const page of forwards(stream, pageStart, pageEnd, signal)) records.push(...page.records)
    yield { start: pageStart, end: pageEnd, records }
    pageEnd = pageStart
  }
}
