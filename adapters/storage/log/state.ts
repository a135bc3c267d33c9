import { blockExpiresAt } from '../../../src/core/retention.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head } from '../../../src/storage/contract.ts'
import { type WriteStateChange, withWriteStateChange } from '../../../src/storage/heads.ts'
import { lowerBound } from '../../../src/storage/ordered-list.ts'
import {
  type Change,
  decodeHead,
  type EncodedHead,
  encodeHead,
  type FirstBlock,
  type StoredDocument,
} from './changes.ts'
import type { FramePlace } from './journal.ts'
import { type EntryCodec, entriesOf, Table } from './table.ts'

/** A log. Its blocks are those of the runs, and then those in journals. Replaced, never modified. */
export interface Log {
  readonly head: Head
  /** Everything that ends at or below it is freed, and does not count. */
  readonly freedBelow: number
  /** Of all blocks that are not freed. */
  readonly meteredBytes: number
  /** The first block that is not freed. */
  readonly first: FirstBlock | null
  /** Ascending; not those of which everything is freed. */
  readonly runs: readonly Run[]
  /** Ascending. Later states of the log may share the array, to which their blocks are added. */
  readonly blocks: JournalBlock[]
}

/** Where blocks of a log are that follow each other in a file. */
export interface Place extends FramePlace {
  /** The number of the journal, if it is in one. */
  readonly journal?: number | undefined
  readonly endSeqNum: number
  readonly lastTimestamp: number
  /** Whether the last of them is of the same block of an append as the one behind it. */
  readonly isContinued: boolean
}

/** Consecutive blocks of a log in a segment. */
export interface Run extends Place {
  readonly segment: number
  /** Length of the index behind the blocks; 0 if there is none. */
  readonly indexBytes: number
  readonly blocks: number
  readonly meteredBytes: number
  readonly first: FirstBlock
  /** The latest of all blocks; null if one never expires. */
  readonly lastExpiry: number | null
}

/** A block in a journal. */
export interface JournalBlock extends BlockSummary, Place {
  readonly journal: number
}

export interface Segment {
  readonly number: number
  readonly bytes: number
  /** The runs that are in use, and their bytes. */
  runs: number
  runBytes: number
}

/** Everything that the storage knows, as of the last durable group. */
export class State {
  readonly logs = new Table<Log>(LOG_CODEC)
  readonly #collections = new Map<Collection, Table<StoredDocument>>()
  segments = new Map<number, Segment>()
  /** Versions of documents are never reused. */
  nextVersion = 1
  nextSegment = 1
  /** Whether a segment has no run any more that is in use. */
  hasUnusedSegments = false
  /** A lower bound of when one of the logs is due that were changed since the last checkpoint. */
  #changedDue = Number.POSITIVE_INFINITY

  get collections(): ReadonlyMap<Collection, Table<StoredDocument>> {
    return this.#collections
  }

  /** The documents of a collection. */
  documents(collection: Collection): Table<StoredDocument> {
    let table = this.#collections.get(collection)
    if (table === undefined) {
      table = new Table(DOCUMENT_CODEC)
      this.#collections.set(collection, table)
    }
    return table
  }

  /** How many documents and logs were changed since the last checkpoint. */
  get changes(): number {
    let count = this.logs.changed.size
    for (const table of this.#collections.values()) count += table.changed.size
    return count
  }

  /** Applies a change that is durable. Throws `RangeError` if it does not fit the state. */
  apply(change: Change, journal: number, place: FramePlace): void {
    if (change.kind === 'document') {
      const { collection, key, content } = change
      this.documents(collection).set(key, content)
      if (content !== null) this.nextVersion = Math.max(this.nextVersion, content.version + 1)
      return
    }
    const log = this.logs.get(change.log)
    if (change.kind === 'head') {
      const { head } = change
      for (const run of head === null ? (log?.runs ?? []) : []) this.release(run)
      this.setLog(change.log, head && { ...(log ?? newLog()), head })
      return
    }
    if (log === undefined) throw new RangeError('a log is missing')
    this.setLog(
      change.log,
      change.kind === 'block' ? appended(log, change, journal, place) : this.#freed(log, change),
    )
  }

  setLog(id: string, log: Log | null): void {
    this.logs.set(id, log)
    if (log !== null) this.#changedDue = Math.min(this.#changedDue, LOG_CODEC.dueOf(log))
  }

  /** The logs of which something has to be freed at or before `until`. They may change meanwhile. */
  *dueLogs(until: number): Generator<readonly [id: string, log: Log]> {
    const { changed } = this.logs
    if (this.#changedDue <= until) {
      this.#changedDue = Number.POSITIVE_INFINITY
      for (const id of [...changed.keys()]) {
        const log = changed.get(id)
        if (!log) continue
        const due = LOG_CODEC.dueOf(log)
        this.#changedDue = Math.min(this.#changedDue, due)
        if (due <= until) yield [id, log]
      }
    }
    for (const part of this.logs.parts) {
      if (part.due > until) continue
      let next = Number.POSITIVE_INFINITY
      for (const item of entriesOf(part.entries)) {
        if (item.due <= until && !changed.has(item.key)) yield [item.key, this.logs.valueOf(item)]
        if (!changed.has(item.key)) next = Math.min(next, item.due)
      }
      part.due = next
    }
  }

  /** Counts a run no longer that is freed or whose log is deleted. */
  release(run: Run): void {
    const segment = this.segments.get(run.segment)
    if (segment === undefined || segment.runs === 0) throw new RangeError('a segment is missing')
    segment.runs--
    segment.runBytes -= run.bytes
    this.hasUnusedSegments ||= segment.runs === 0
  }

  #freed(log: Log, { below, meteredBytes, first }: Extract<Change, { kind: 'free' }>): Log {
    if (below <= log.freedBelow || meteredBytes > log.meteredBytes) {
      throw new RangeError('more is freed than there is')
    }
    for (const run of log.runs) if (run.endSeqNum <= below) this.release(run)
    const left = lowerBound(log.blocks, ({ endSeqNum }) => endSeqNum > below)
    return {
      ...log,
      freedBelow: below,
      meteredBytes: log.meteredBytes - meteredBytes,
      // A block may have been added since the first one was looked for.
      first: first ?? log.blocks[left] ?? null,
      runs: log.runs.filter(({ endSeqNum }) => endSeqNum > below),
      blocks: log.blocks.slice(left),
    }
  }
}

function newLog(): Omit<Log, 'head'> {
  return { freedBelow: 0, meteredBytes: 0, first: null, runs: [], blocks: [] }
}

function appended(
  log: Log,
  { block, isContinued, head, writeState: change }: Extract<Change, { kind: 'block' }>,
  journal: number,
  { offset, bytes }: FramePlace,
): Log {
  const before = Math.max(log.blocks.at(-1)?.endSeqNum ?? 0, log.head.tail.seqNum)
  if (block.firstSeqNum !== before) throw new RangeError('a block does not follow the one before it')
  if (head && head.tail.seqNum !== block.endSeqNum) throw new RangeError('a head has another tail')
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt } = block
  const added: JournalBlock = {
    firstSeqNum,
    endSeqNum,
    firstTimestamp,
    lastTimestamp,
    meteredBytes,
    expiresAt,
    journal,
    offset,
    bytes,
    isContinued,
  }
  log.blocks.push(added)
  return {
    head: head ? headAfter(log.head, head, change) : log.head,
    freedBelow: log.freedBelow,
    meteredBytes: log.meteredBytes + meteredBytes,
    first: log.first ?? added,
    runs: log.runs,
    blocks: log.blocks,
  }
}

/** An append leaves the extensions, and tells what it changes of the write state. */
function headAfter({ extensions, writeState }: Head, head: Head, change: WriteStateChange | undefined): Head {
  const isSame = head.extensions === extensions && head.writeState === writeState
  if (isSame && change === undefined) return head
  const changed = change ? withWriteStateChange(writeState, change) : writeState
  const { extensions: _, writeState: __, ...others } = head
  return { ...others, ...(extensions && { extensions }), ...(changed && { writeState: changed }) }
}

const DOCUMENT_CODEC: EntryCodec<StoredDocument> = {
  encode: (document) => document,
  decode: (encoded) => encoded as StoredDocument,
  dueOf: () => Number.POSITIVE_INFINITY,
}

type EncodedLog = ReturnType<typeof encodeLog>
type EncodedRun = ReturnType<typeof encodeRun>

const LOG_CODEC: EntryCodec<Log> = {
  encode: encodeLog,
  decode(encoded) {
    const { head, freedBelow, meteredBytes, first, runs } = encoded as EncodedLog
    return {
      head: decodeHead(head as EncodedHead),
      freedBelow,
      meteredBytes,
      first: first && decodeFirst(first),
      runs: runs.map(decodeRun),
      blocks: [],
    }
  },
  /** When the first block can be freed; infinite for never. */
  dueOf({ first, head }) {
    if (first === null) return Number.POSITIVE_INFINITY
    const trim = head.trims.find(({ point }) => point >= first.endSeqNum)?.at
    const expiry = blockExpiresAt(first, head.extensions)
    return Math.min(trim ?? Number.POSITIVE_INFINITY, expiry ?? Number.POSITIVE_INFINITY)
  },
}

function encodeLog({ head, freedBelow, meteredBytes, first, runs }: Log) {
  return {
    head: encodeHead(head),
    freedBelow,
    meteredBytes,
    first: first && encodeFirst(first),
    runs: runs.map(encodeRun),
  }
}

function encodeFirst({ firstSeqNum, endSeqNum, expiresAt }: FirstBlock) {
  return [firstSeqNum, endSeqNum, expiresAt] as const
}

function decodeFirst([firstSeqNum, endSeqNum, expiresAt]: ReturnType<typeof encodeFirst>): FirstBlock {
  return { firstSeqNum, endSeqNum, expiresAt }
}

function encodeRun({ first, ...run }: Run) {
  return [
    run.segment,
    run.offset,
    run.bytes,
    run.indexBytes,
    run.endSeqNum,
    run.lastTimestamp,
    run.blocks,
    run.meteredBytes,
    run.lastExpiry,
    encodeFirst(first),
  ] as const
}

function decodeRun(encoded: EncodedRun): Run {
  const [segment, offset, bytes, indexBytes, endSeqNum, lastTimestamp, blocks, meteredBytes] = encoded
  const [lastExpiry, first] = [encoded[8], decodeFirst(encoded[9])]
  return {
    segment,
    offset,
    bytes,
    indexBytes,
    endSeqNum,
    lastTimestamp,
    isContinued: false,
    blocks,
    meteredBytes,
    first,
    lastExpiry,
  }
}
