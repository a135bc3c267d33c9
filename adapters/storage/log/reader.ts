import { BlockCollector } from '../../../src/storage/block-collector.ts'
import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'
import { cutBlock } from '../../../src/storage/cut-block.ts'
import { lowerBound, RecentMap } from '../../../src/storage/ordered-list.ts'
import { type Medium, MissingFile } from '../media/medium.ts'
import { fileName } from './format.ts'
import type { Journal } from './journal.ts'
import { blocksAt, readIndex } from './segment.ts'
import type { Log, Place, Run, State } from './state.ts'

/** Bytes per read, unless one block is longer. */
const WINDOW_BYTES = 1_048_576
/**
 * What lies between two blocks of a journal is read along up to this length, which is cheaper than a second
 * read.
 */
const GAP_BYTES_MAX = 16_384
/** The indexes of so many runs stay in memory. */
const INDEXES_MAX = 16
/** How often a read begins again because a roll removed its files. */
const ATTEMPTS_MAX = 10

/** Reads the blocks of logs. */
export class LogReader {
  readonly #medium: Medium
  readonly #state: State
  readonly #journal: Journal
  readonly #indexes = new RecentMap<string, readonly Place[]>(INDEXES_MAX)

  constructor(medium: Medium, state: State, journal: Journal) {
    this.#medium = medium
    this.#state = state
    this.#journal = journal
  }

  async read(id: string, range: ReadRange): Promise<StoredBlock[]> {
    for (let attempt = 1; ; attempt++) {
      const log = this.#state.logs.get(id)
      if (log === undefined) return []
      try {
        return await this.#read(id, log, range)
      } catch (error) {
        // A roll may have moved the blocks, and removed the files in which they were.
        const isMoved = error instanceof MissingFile && this.#state.logs.get(id) !== log
        if (!isMoved || attempt >= ATTEMPTS_MAX) throw error
      }
    }
  }

  async #read(id: string, log: Log, range: ReadRange): Promise<StoredBlock[]> {
    const selection = new Selection(range, log.freedBelow)
    const { runs, blocks } = log
    // Later appends add blocks to the array.
    const blocksEnd = blocks.length
    for (const run of runs.slice(lowerBound(runs, (run) => selection.isReached(run)))) {
      if (selection.isDone || run.first.firstSeqNum >= range.endSeqNum) break
      const places = await this.#indexOf(id, run)
      const file = { name: fileName('segment', run.segment), salt: 0 }
      await this.#readPlaces(id, places, places.length, file, selection)
    }
    await this.#readPlaces(id, blocks, blocksEnd, undefined, selection)
    return selection.blocks
  }

  /** @param file Undefined for places in journals. */
  async #readPlaces(
    id: string,
    places: readonly Place[],
    end: number,
    file: PlaceFile | undefined,
    selection: Selection,
  ): Promise<void> {
    for (let next = selection.firstOf(places, end); next < end && !selection.isDone; ) {
      const window = windowOf(places, next, end, selection)
      const { offset } = window[0]!
      const last = window.at(-1)!
      const { name, salt } = file ?? this.#journalOf(last)
      const bytes = await selection.readInto((memory) =>
        this.#medium.read(name, offset, last.offset + last.bytes - offset, memory),
      )
      const found = window.flatMap((place) => blocksAt(name, place, bytes, offset, id, salt))
      selection.addAll(found)
      next += window.length
    }
  }

  #journalOf({ journal }: Place): PlaceFile {
    const name = fileName('journal', journal!)
    const file = this.#journal.files.find(({ number }) => number === journal)
    if (file === undefined) throw new MissingFile(name)
    return { name, salt: file.salt }
  }

  /** Numbers of segments are not used again, so an index stays what it is. */
  async #indexOf(id: string, run: Run): Promise<readonly Place[]> {
    if (run.indexBytes === 0) return readIndex(this.#medium, id, run)
    const key = `${run.segment} ${run.offset}`
    const index = this.#indexes.get(key) ?? (await readIndex(this.#medium, id, run))
    this.#indexes.set(key, index)
    return index
  }
}

interface PlaceFile {
  readonly name: string
  readonly salt: number
}

/** Selects what a read wants. Blocks are added in the order of the log. */
class Selection {
  readonly #range: ReadRange
  readonly #freedBelow: number
  readonly #collector: BlockCollector<StoredBlock>
  #end = 0
  /** The rest of the memory that the caller lends. */
  #memory: Uint8Array | undefined

  constructor(range: ReadRange, freedBelow: number) {
    this.#range = range
    this.#memory = range.memory
    this.#freedBelow = freedBelow
    this.#collector = new BlockCollector(range)
  }

  /** The blocks that were added, as far as the read wants them. */
  get blocks(): StoredBlock[] {
    return this.#collector.blocks
  }

  get isDone(): boolean {
    return this.#collector.isDone || this.#end >= this.#range.endSeqNum
  }

  /** Whether the read wants nothing behind blocks of so many bytes that end like this one. */
  isFilledBy({ endSeqNum }: Place, bytes: number): boolean {
    const { from, endSeqNum: end } = this.#range
    const { blocks, bytesLeft, recordsLeft } = this.#collector
    const next = blocks.at(-1)?.endSeqNum ?? ('seqNum' in from ? from.seqNum : undefined)
    // By timestamp, any of the first records may be the first one that is wanted.
    return bytes >= bytesLeft || endSeqNum >= end || next === undefined || endSeqNum - next >= recordsLeft
  }

  /** Whether the read begins at or before the end of these blocks. */
  isReached({ endSeqNum, lastTimestamp }: Pick<Place, 'endSeqNum' | 'lastTimestamp'>): boolean {
    const { from } = this.#range
    if (endSeqNum <= this.#freedBelow) return false
    return 'seqNum' in from ? endSeqNum > from.seqNum : lastTimestamp >= from.timestamp
  }

  /** The index of the first place that is needed, of so many. */
  firstOf(places: readonly Place[], end: number): number {
    return lowerBound(places, (place) => this.isReached(place), end)
  }

  /** Calls `read` with the memory that it may use. */
  async readInto(read: (memory: Uint8Array | undefined) => Promise<Buffer>): Promise<Buffer> {
    const bytes = await read(this.#memory)
    if (bytes.buffer === this.#memory?.buffer) this.#memory = this.#memory.subarray(bytes.length)
    return bytes
  }

  /** Adds blocks that were read at once. */
  addAll(blocks: readonly StoredBlock[]): void {
    for (const block of blocks) {
      if (block.endSeqNum <= this.#freedBelow) continue
      this.#end = block.endSeqNum
      if (this.#collector.isDone || !this.isReached(block)) continue
      this.#collector.add(this.#collector.blocks.length === 0 ? cutBlock(block, this.#range) : block)
    }
  }
}

/** Places in one file that are close together, and about as much as the read wants. */
function windowOf(
  places: readonly Place[],
  start: number,
  placesEnd: number,
  selection: Selection,
): readonly Place[] {
  const first = places[start]!
  let end = start + 1
  let bytes = first.bytes
  for (; end < placesEnd && !selection.isFilledBy(places[end - 1]!, bytes); end++) {
    const [before, place] = [places[end - 1]!, places[end]!]
    const gap = place.offset - before.offset - before.bytes
    if (place.journal !== first.journal || gap > GAP_BYTES_MAX) break
    if (place.offset + place.bytes - first.offset > WINDOW_BYTES) break
    bytes += place.bytes
  }
  return places.slice(start, end)
}
