import { extendedExpiry, laterOf } from '../../../src/core/retention.ts'
import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Collection, Head } from '../../../src/storage/contract.ts'
import { emptyHead, withWriteStateChange, writeStateChange } from '../../../src/storage/heads.ts'
import { lowerBound } from '../../../src/storage/ordered-list.ts'
import type { ByteReader, ByteWriter } from './bytes.ts'
import {
  type Change,
  readExtensions,
  readHead,
  readList,
  readWriteStateChange,
  writeExtensions,
  writeHead,
  writeWriteStateChange,
} from './changes.ts'
import { DueLogs } from './due-logs.ts'
import { type EntryCodec, Table } from './table.ts'

/** A log. Its blocks are those of the runs, and then those in journals. */
export interface Log {
  head: Head
  /** Everything that ends at or below it is freed, and does not count. */
  freedBelow: number
  /** Of all blocks that are not freed. */
  meteredBytes: number
  /** Ascending; not those of which everything is freed. Replaced, never modified. */
  runs: readonly Run[]
  /** Ascending. */
  blocks: JournalBlock[]
}

/** Consecutive blocks of a log in a segment. */
export interface Run {
  readonly segment: number
  readonly offset: number
  /** Length of its chunks. */
  readonly bytes: number
  /** Length of the index behind the chunks; 0 if there is a single chunk. */
  readonly indexBytes: number
  readonly firstSeqNum: number
  readonly endSeqNum: number
  readonly lastTimestamp: number
  readonly blocks: number
  readonly meteredBytes: number
  /** Of its first block. */
  readonly firstExpiry: number | null
  /** The latest of all blocks; null if one never expires. */
  readonly lastExpiry: number | null
}

/** The place of a frame in a journal. */
export interface JournalPlace {
  readonly journal: number
  readonly offset: number
  readonly bytes: number
}

/** A block in a journal. */
export interface JournalBlock extends BlockSummary, JournalPlace {
  /** Whether the next block is of the same append. */
  readonly isContinued: boolean
}

export interface Segment {
  readonly number: number
  readonly bytes: number
  /** The runs that are in use, and their bytes. */
  runs: number
  runBytes: number
}

/** A document as it is stored. */
export interface StoredDocument {
  readonly version: number
  /** JSON. */
  readonly text: string
}

/** Everything that the storage knows, as of the last durable group. */
export class State {
  readonly logs = new Table<Log>(logCodec(this))
  readonly due = new DueLogs()
  readonly #collections = new Map<Collection, Table<StoredDocument>>()
  segments = new Map<number, Segment>()
  /** Versions of documents are never reused. */
  nextVersion = 1
  nextSegment = 1
  /** Whether a segment has no run any more that is in use. */
  hasUnusedSegments = false

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

  freeze(): void {
    for (const table of [this.logs, ...this.#collections.values()]) table.freeze()
  }

  thaw(): void {
    for (const table of [this.logs, ...this.#collections.values()]) table.thaw()
  }

  /** Applies a change that is durable. Throws `RangeError` if it does not fit the state. */
  apply(change: Change, place: JournalPlace): void {
    switch (change.kind) {
      case 'put':
        this.documents(change.collection).set(change.key, { version: change.version, text: change.text })
        this.nextVersion = Math.max(this.nextVersion, change.version + 1)
        return
      case 'delete':
        this.documents(change.collection).set(change.key, null)
        return
      case 'create-log': {
        if (this.logs.get(change.log) !== undefined) throw new RangeError('a log is created twice')
        const head = emptyHead(change.epoch, change.createdAt, change.start)
        this.logs.set(change.log, { head, freedBelow: 0, meteredBytes: 0, runs: [], blocks: [] })
        return
      }
      case 'delete-log':
        for (const run of this.#log(change.log).runs) this.release(run)
        this.logs.set(change.log, null)
        return
      case 'set-epoch': {
        const log = this.#log(change.log)
        const { extensions: _, ...head } = log.head
        const { epoch, extensions } = change
        log.head = { ...head, epoch, ...(extensions.length > 0 && { extensions }) }
        this.due.schedule(change.log, dueTimeOf(log))
        return
      }
      case 'part':
        this.#addBlock(change.log, this.#log(change.log), change.block, place, true)
        return
      case 'block':
        this.#addBlock(change.log, this.#log(change.log), change.block, place, false)
        return
      case 'append': {
        const log = this.#log(change.log)
        this.#addBlock(change.log, log, change.block, place, false)
        if (change.block.endSeqNum !== change.head.tail.seqNum)
          throw new RangeError('a head has another tail')
        const { extensions, writeState, trims } = log.head
        log.head = {
          ...change.head,
          ...(extensions && { extensions }),
          ...(change.writeState
            ? { writeState: withWriteStateChange(writeState, change.writeState) }
            : writeState && { writeState }),
        }
        const trim = change.head.trims.at(-1)
        if (trim !== undefined && trim.at !== trims.at(-1)?.at) this.due.schedule(change.log, trim.at)
        return
      }
      case 'free':
        this.#free(change.log, change.below, change.meteredBytes)
    }
  }

  /** Schedules the logs that journals changed. */
  scheduleChanged(): void {
    for (const [id, log] of this.logs.changed) if (log !== null) this.due.schedule(id, dueTimeOf(log))
  }

  #log(id: string): Log {
    const own = this.logs.changed.get(id)
    if (own) return own
    const log = this.logs.get(id)
    if (log === undefined) throw new RangeError('a log is missing')
    const copy = { ...log, blocks: log.blocks.slice() }
    this.logs.set(id, copy)
    return copy
  }

  #addBlock(
    id: string,
    log: Log,
    block: BlockSummary,
    { journal, offset, bytes }: JournalPlace,
    isContinued: boolean,
  ): void {
    const before = log.blocks.at(-1)?.endSeqNum ?? log.head.tail.seqNum
    if (block.firstSeqNum !== Math.max(before, log.head.tail.seqNum)) {
      throw new RangeError('a block does not follow the one before it')
    }
    const { firstSeqNum, endSeqNum, firstTimestamp, lastTimestamp, meteredBytes, expiresAt } = block
    if (log.blocks.length === 0 && log.runs.length === 0) {
      this.due.schedule(id, extendedExpiry(block, log.head.extensions))
    }
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
      isContinued,
    })
    log.meteredBytes += meteredBytes
  }

  #free(id: string, below: number, meteredBytes: number): void {
    const log = this.#log(id)
    if (below <= log.freedBelow || meteredBytes > log.meteredBytes) {
      throw new RangeError('more is freed than there is')
    }
    log.freedBelow = below
    log.meteredBytes -= meteredBytes
    for (const run of log.runs) if (run.endSeqNum <= below) this.release(run)
    log.runs = log.runs.filter(({ endSeqNum }) => endSeqNum > below)
    log.blocks.splice(
      0,
      lowerBound(log.blocks, ({ endSeqNum }) => endSeqNum > below),
    )
  }

  /** Counts a run no longer that is freed or whose log is deleted. */
  release(run: Run): void {
    const segment = this.segments.get(run.segment)
    if (segment === undefined || segment.runs === 0) throw new RangeError('a segment is missing')
    segment.runs--
    segment.runBytes -= run.bytes
    this.hasUnusedSegments ||= segment.runs === 0
  }
}

/** A lower bound of when something of a log has to be freed; null for never. */
function dueTimeOf({ head, freedBelow, runs, blocks }: Log): number | null {
  const trim = head.trims.find(({ point }) => point > freedBelow)?.at
  const expiry = firstExpiryOf(head, freedBelow, runs, blocks)
  if (trim === undefined) return expiry
  return expiry === null ? trim : Math.min(trim, expiry)
}

function firstExpiryOf(
  head: Head,
  freedBelow: number,
  [run]: readonly Run[],
  [block]: readonly JournalBlock[],
): number | null {
  if (run === undefined) return block === undefined ? null : extendedExpiry(block, head.extensions)
  const { firstSeqNum, firstExpiry: expiresAt } = run
  // The first block that is left is not known without reading it.
  return freedBelow > firstSeqNum ? 0 : extendedExpiry({ firstSeqNum, expiresAt }, head.extensions)
}

/** The later of two expiries of a run; undefined before the first block. */
export function latestExpiry(latest: number | null | undefined, expiresAt: number | null): number | null {
  return latest === undefined ? expiresAt : laterOf(latest, expiresAt)
}

const DOCUMENT_CODEC: EntryCodec<StoredDocument> = {
  write(writer, _, { version, text }) {
    writer.varint(version)
    writer.string(text)
  },
  read: (reader) => ({ version: reader.varint(), text: reader.string() }),
}

/**
 * A log begins with its due time, so that the others need not be decoded. Blocks in journals are left out.
 */
function logCodec(state: State): EntryCodec<Log> {
  return {
    write(writer, id, log) {
      writer.optional(state.due.timeOf(id) ?? dueTimeOf(log))
      writeHead(writer, log.head)
      writer.varint(log.freedBelow)
      writer.varint(log.meteredBytes)
      writer.varint(log.runs.length)
      for (const run of log.runs) writeRun(writer, run)
      const { extensions = [], writeState } = log.head
      const change = writeStateChange(undefined, writeState)
      if (extensions.length > 0 || change !== undefined) writeExtensions(writer, extensions)
      if (change !== undefined) writeWriteStateChange(writer, change)
    },
    read(reader) {
      reader.optional()
      const head = readHead(reader)
      const [freedBelow, meteredBytes] = [reader.varint(), reader.varint()]
      const runs = readList(reader, () => readRun(reader))
      const extensions = reader.left > 0 ? readExtensions(reader) : []
      const change = reader.left > 0 ? readWriteStateChange(reader) : undefined
      return {
        head: {
          ...head,
          ...(extensions.length > 0 && { extensions }),
          ...(change && { writeState: withWriteStateChange(undefined, change) }),
        },
        freedBelow,
        meteredBytes,
        runs,
        blocks: [],
      }
    },
  }
}

function writeRun(writer: ByteWriter, run: Run): void {
  writer.varint(run.segment)
  writer.varint(run.offset)
  writer.varint(run.bytes)
  writer.varint(run.indexBytes)
  writer.varint(run.firstSeqNum)
  writer.varint(run.endSeqNum - run.firstSeqNum)
  writer.varint(run.lastTimestamp)
  writer.varint(run.blocks)
  writer.varint(run.meteredBytes)
  writer.optional(run.firstExpiry)
  writer.optional(run.lastExpiry)
}

function readRun(reader: ByteReader): Run {
  const [segment, offset] = [reader.varint(), reader.varint()]
  const bytes = reader.varintAfter(offset) - offset
  const indexBytes = reader.varint()
  const firstSeqNum = reader.varint()
  return {
    segment,
    offset,
    bytes,
    indexBytes,
    firstSeqNum,
    endSeqNum: reader.varintAfter(firstSeqNum),
    lastTimestamp: reader.varint(),
    blocks: reader.varint(),
    meteredBytes: reader.varint(),
    firstExpiry: reader.optional(),
    lastExpiry: reader.optional(),
  }
}
