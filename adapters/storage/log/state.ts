import { reclaimTimes } from '../../../src/core/retention.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head } from '../../../src/storage/contract.ts'
import { type WriteStateChange, withWriteStateChange } from '../../../src/storage/heads.ts'
import { lowerBound } from '../../../src/storage/ordered-list.ts'
import {
  type BlockChange,
  type Change,
  decodeHead,
  encodeHead,
  type FirstBlock,
  type FreeChange,
  type StoredDocument,
} from './changes.ts'
import { Fields, type Row } from './format.ts'
import { dueIn, type EntryCodec, Table } from './table.ts'

/** A log. Its blocks are those of the runs, and then those in journals. Replaced, never modified. */
export interface Log {
  readonly head: Head
  /** Everything that ends at or below it is freed, and does not count. */
  readonly freedBelow: number
  /** Of all blocks that are not freed. */
  readonly meteredBytes: number
  /** Ascending; not those of which everything is freed. */
  readonly runs: readonly Run[]
  /** Ascending. Later states of the log may share the array, to which their blocks are added. */
  readonly blocks: JournalBlock[]
}

/** Bytes of a file. */
export interface Span {
  readonly offset: number
  readonly bytes: number
}

/** Where blocks of a log are that follow each other in a file. */
export interface Place extends Span {
  /** The number of the journal, if it is in one. */
  readonly journal?: number | undefined
  readonly endSeqNum: number
  readonly lastTimestamp: number
}

/** Consecutive blocks of a log in a segment. */
export interface Run extends Place {
  readonly segment: number
  /** Length of the index behind the blocks; 0 if there is none. */
  readonly indexBytes: number
  /** How many blocks it had when it was written. */
  readonly blocks: number
  /** The metered size of the blocks that are not freed. */
  readonly meteredBytes: number
  /** The first block that is not freed. */
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
  readonly runs: number
  readonly runBytes: number
}

/** The first block of a log that is not freed. */
export function firstOf({ runs, blocks }: Log): FirstBlock | undefined {
  return runs[0]?.first ?? blocks[0]
}

/** Everything that the storage knows, as of the last durable group. */
export class State {
  readonly logs = new Table<Log>(LOG_CODEC)
  readonly #collections = new Map<Collection, Table<StoredDocument>>()
  readonly segments = new Map<number, Segment>()
  /** Versions of documents are never reused. */
  nextVersion = 1
  nextSegment = 1

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

  /**
   * Applies a change that is durable. Throws `RangeError` if it does not fit the state.
   *
   * @param span Its frame in this journal.
   */
  apply(change: Change, journal: number, span: Span): void {
    if (change.kind === 'document') {
      const { collection, key, content } = change
      this.documents(collection).set(key, content)
      if (content !== null) this.nextVersion = Math.max(this.nextVersion, content.version + 1)
      return
    }
    const log = this.logs.get(change.log)
    if (change.kind === 'head') {
      const { head } = change
      if (head === null) for (const run of log?.runs ?? []) this.release(run)
      this.logs.set(change.log, head && { ...NEW_LOG, blocks: [], ...log, head })
      return
    }
    if (log === undefined) throw new RangeError('a log is missing')
    const isBlock = change.kind === 'block'
    this.logs.set(change.log, isBlock ? appended(log, change, journal, span) : this.#freed(log, change))
  }

  /** The logs of which something has to be freed at or before `until`. They may change meanwhile. */
  *dueLogs(until: number): Generator<readonly [id: string, log: Log]> {
    const { changed, parts } = this.logs
    for (const [id, log] of changed) if (log !== null && LOG_CODEC.dueOf(log) <= until) yield [id, log]
    for (const part of parts) {
      for (const item of part.due > until ? [] : dueIn(part, until)) {
        if (!changed.has(item.key)) yield [item.key, this.logs.valueOf(item)]
      }
    }
  }

  /** Counts a run no longer that is freed or whose log is deleted. */
  release(run: Run): void {
    const segment = this.segments.get(run.segment)
    if (segment === undefined) throw new RangeError('a segment is missing')
    const [runs, runBytes] = [segment.runs - 1, segment.runBytes - run.bytes]
    this.segments.set(run.segment, { ...segment, runs, runBytes })
  }

  #freed(log: Log, { below, meteredBytes, next }: FreeChange): Log {
    if (below <= log.freedBelow || meteredBytes > log.meteredBytes) {
      throw new RangeError('more is freed than there is')
    }
    const freedRuns = log.runs.filter(({ endSeqNum }) => endSeqNum <= below)
    for (const run of freedRuns) this.release(run)
    const runs = log.runs.slice(freedRuns.length)
    if (next !== null) {
      const [run] = runs
      if (run === undefined) throw new RangeError('a run is missing')
      const inOthers = freedRuns.reduce((sum, freed) => sum + freed.meteredBytes, 0)
      runs[0] = { ...run, first: next, meteredBytes: run.meteredBytes - (meteredBytes - inOthers) }
    }
    return {
      ...log,
      freedBelow: below,
      meteredBytes: log.meteredBytes - meteredBytes,
      runs,
      blocks: log.blocks.slice(lowerBound(log.blocks, ({ endSeqNum }) => endSeqNum > below)),
    }
  }
}

const NEW_LOG: Omit<Log, 'head' | 'blocks'> = { freedBelow: 0, meteredBytes: 0, runs: [] }

function appended(
  log: Log,
  { block, head, writeState }: BlockChange,
  journal: number,
  { offset, bytes }: Span,
): Log {
  const before = Math.max(log.blocks.at(-1)?.endSeqNum ?? 0, log.head.tail.seqNum)
  if (block.firstSeqNum !== before) throw new RangeError('a block does not follow the one before it')
  if (head && head.tail.seqNum !== block.endSeqNum) throw new RangeError('a head has another tail')
  const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt } = block
  log.blocks.push({
    firstSeqNum,
    endSeqNum,
    firstTimestamp,
    lastTimestamp,
    meteredBytes,
    expiresAt,
    journal,
    offset,
    bytes,
  })
  return {
    head: head ? headAfter(log.head, head, writeState) : log.head,
    freedBelow: log.freedBelow,
    meteredBytes: log.meteredBytes + meteredBytes,
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

const FIRST = new Fields<FirstBlock>('firstSeqNum', 'endSeqNum', 'expiresAt')
const RUN = new Fields<Omit<Run, 'first'>>(
  'segment',
  'offset',
  'bytes',
  'indexBytes',
  'endSeqNum',
  'lastTimestamp',
  'blocks',
  'meteredBytes',
  'lastExpiry',
)

const LOG_CODEC: EntryCodec<Log> = {
  encode: ({ head, freedBelow, meteredBytes, runs }) => [
    encodeHead(head),
    freedBelow,
    meteredBytes,
    runs.map((run) => [...RUN.encode(run), ...FIRST.encode(run.first)]),
  ],
  decode(encoded) {
    const [head, freedBelow, meteredBytes, runs] = encoded as [Row, number, number, readonly Row[]]
    const run = (row: Row) => ({ ...RUN.decode(row), first: FIRST.decode(row.slice(9)) })
    return { head: decodeHead(head), freedBelow, meteredBytes, runs: runs.map(run), blocks: [] }
  },
  /** When the first block can be freed; infinite for never. */
  dueOf(log) {
    const first = firstOf(log)
    if (first === undefined) return Number.POSITIVE_INFINITY
    const { trimmedAt, expiresAt } = reclaimTimes(first, log.head)
    return Math.min(trimmedAt ?? Number.POSITIVE_INFINITY, expiresAt ?? Number.POSITIVE_INFINITY)
  },
}
