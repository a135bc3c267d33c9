import type { SequencedRecord } from '../../../src/model/record.ts'
import type { Connection } from '../connection.ts'
import type { CurlTarget } from '../snippets.ts'
import { RecordWindow } from './record-window.ts'
import { yieldToPage } from './tail.ts'

/** A search ends after this many records; it can be continued. */
export const FOUND_MAX = 1000

/** A search through a whole stream, from its first record to the tail of the moment when it began. */
export class StreamSearch {
  /** The records that were found. */
  readonly found = new RecordWindow()
  state: 'running' | 'done' | 'limited' | 'cancelled' | 'failed' = 'running'
  error: Error | undefined
  /** The sequence numbers of the first record, of the next one to look at, and of the tail. */
  first = 0
  next = 0
  tail = 0
  /** Records per second. */
  rate = 0
  readonly #abort = new AbortController()
  readonly #onChange: () => void

  /** Begins at a sequence number. */
  constructor(
    connection: Connection,
    { basin, stream, encryptionKey }: CurlTarget,
    from: number,
    selects: (record: SequencedRecord) => boolean,
    onChange: () => void,
  ) {
    this.#onChange = onChange
    const handle = connection.hw.basin(basin).stream(stream, { encryptionKey })
    this.first = from
    this.next = from
    const search = async (signal: AbortSignal) => {
      this.tail = (await handle.checkTail({ signal })).seqNum
      const started = performance.now()
      let scanned = 0
      let workSince = started
      const session = handle.read({ seqNum: from, clamp: true }, { as: 'bytes', signal })
      for await (const { records } of session.batches()) {
        if (scanned === 0) this.first = records[0]?.seqNum ?? from
        for (const record of records) {
          if (record.seqNum >= this.tail) return 'done'
          if (selects(record)) {
            if (this.found.held === FOUND_MAX || !this.found.hasRoomFor([record])) return 'limited'
            this.found.append([record])
          }
          this.next = record.seqNum + 1
          scanned++
        }
        this.rate = Math.round((scanned * 1000) / Math.max(1, performance.now() - started))
        workSince = await yieldToPage(workSince)
        onChange()
      }
      this.next = this.tail
      return 'done'
    }
    search(this.#abort.signal).then(
      (state) => this.#end(state),
      (error) => {
        this.error = error
        this.#end('failed')
      },
    )
  }

  /** How much of the stream was searched, from 0 to 1. */
  get part(): number {
    return this.tail <= this.first ? 1 : (this.next - this.first) / (this.tail - this.first)
  }

  cancel(): void {
    if (this.state === 'running') this.#end('cancelled')
    this.#abort.abort()
  }

  #end(state: StreamSearch['state']): void {
    if (this.state !== 'running') return
    this.state = state
    this.#onChange()
  }
}
