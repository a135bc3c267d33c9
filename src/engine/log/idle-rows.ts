import type { StreamConfig } from '../../model/config.ts'
import type { StreamRef } from '../../model/names.ts'
import { AppendIds } from '../../storage/append-ids.ts'
import type { Head } from '../../storage/contract.ts'
import type { StreamDocument } from '../../storage/documents.ts'
import type { StreamLog } from './stream-log.ts'

/** One array for all rows would be copied as it grows. */
const CHUNK_ROWS = 4_096
/** One map for all names would be copied as it grows. */
const SHARDS = 64
/** How many rows a new one considers for replacement: all may be in use. */
const SCAN_MAX = 64
/** Further configurations are not compared: each document keeps its own. */
const CONFIGS_MAX = 256

/** The `row` of a log that was used and has no row yet. */
export const NO_ROW = -1

// The states of a row. `OLD` is idle, and was so when the row was last considered for replacement.
const FREE = 0
const IN_USE = 1
const IDLE = 2
const OLD = 3

// The numbers of a row.
const SEQ_NUM = 0
const TIMESTAMP = 1
const TRIM_POINT = 2
const APPENDED_AT = 3
// The append id, as `AppendIds` splits it.
const APPEND_PREFIX = 4
const APPEND_COUNT = 5
const RECORD_BYTES = 6
/** One is spare: a row is as long as a cache line. */
const NUMBERS = 8

const NO_TRIMS: Head['trims'] = Object.freeze([])

/** The state of a stream, with its row. */
interface IdleLog {
  readonly row: number
  readonly document: StreamDocument
  readonly head: Head
  readonly recordBytes: number
}

/** {@link CHUNK_ROWS} rows. */
interface Chunk {
  readonly documents: (StreamDocument | undefined)[]
  /** {@link NUMBERS} of each row. */
  readonly numbers: Float64Array
  readonly states: Uint8Array
}

/**
 * The states of idle streams, in rows of a few large arrays: objects would take five times the memory, and a
 * garbage collector would visit them all. A stream keeps its row while it is in use, so that the name and the
 * document need not be stored again.
 */
export class IdleRows {
  readonly #max: number
  readonly #chunks: Chunk[] = []
  /** The rows by the shard of the name, the basin and the name. */
  readonly #byName = Array.from({ length: SHARDS }, () => new Map<string, Map<string, number>>())
  readonly #freeRows: number[] = []
  /** Rows are below this. */
  #end = 0
  /** The row to consider next for replacement. */
  #hand = 0
  /** The heads that the numbers of a row cannot represent, by row. */
  readonly #unusualHeads = new Map<number, Head>()
  readonly #appendIds = new AppendIds()
  /** Configurations by their JSON text: a storage returns a new object with each document. */
  readonly #configs = new Map<string, StreamConfig>()
  #size = 0

  constructor(max: number) {
    this.#max = max
  }

  /** The number of idle streams. */
  get size(): number {
    return this.#size
  }

  /**
   * Stores the state of an idle log. Returns false if there is no row for it, or if a row cannot represent
   * it: it is encrypted or expires, it must be loaded again, or it was not used since it was created.
   */
  put(log: StreamLog): boolean {
    const { document, head, recordBytes } = log
    const { cipher, expiry, epoch } = document
    if (log.row === undefined || log.isStale) return false
    // Duplicates are recognized by it without reading the head again.
    if (head.writeState !== undefined) return false
    if (cipher !== null || expiry !== undefined || epoch !== head.epoch) return false
    const isKnown = log.row !== NO_ROW && this.#chunkOf(log.row)?.documents[log.row % CHUNK_ROWS] === document
    const row = isKnown ? log.row : (this.#find(document) ?? this.#add(document))
    if (row === undefined) return false
    const { documents, numbers, states } = this.#chunkOf(row)!
    const at = row % CHUNK_ROWS
    if (documents[at] !== document) documents[at] = this.#shared(document)
    this.#setState(states, at, IDLE)
    numbers[at * NUMBERS + RECORD_BYTES] = recordBytes
    if (!this.#writeHead(numbers, at * NUMBERS, head)) this.#unusualHeads.set(row, head)
    else if (this.#unusualHeads.size > 0) this.#unusualHeads.delete(row)
    return true
  }

  /** Returns the state of an idle stream, which is in use from now on. */
  take({ basin, stream }: StreamRef): IdleLog | undefined {
    const row = this.#find({ basin, name: stream })
    if (row === undefined) return undefined
    const { documents, numbers, states } = this.#chunkOf(row)!
    const at = row % CHUNK_ROWS
    if (states[at] === IN_USE) return undefined
    this.#setState(states, at, IN_USE)
    const document = documents[at]!
    const head = this.#unusualHeads.get(row) ?? this.#readHead(numbers, at * NUMBERS, document.epoch)
    return { row, document, head, recordBytes: numbers[at * NUMBERS + RECORD_BYTES]! }
  }

  /** Frees the row of a log that leaves the cache, unless its state was put into the row. */
  release({ row, document }: StreamLog): void {
    const chunk = row === undefined || row === NO_ROW ? undefined : this.#chunkOf(row)
    if (row === undefined || chunk === undefined) return
    const { documents, states } = chunk
    // The row may have become that of another stream.
    if (states[row % CHUNK_ROWS] === IN_USE && documents[row % CHUNK_ROWS]!.logId === document.logId)
      this.#free(row)
  }

  /** Frees the row of a stream. */
  delete({ basin, stream }: StreamRef): void {
    const row = this.#find({ basin, name: stream })
    if (row !== undefined) this.#free(row)
  }

  /** Forgets all streams. */
  clear(): void {
    for (const names of this.#byName) names.clear()
    this.#chunks.length = 0
    this.#freeRows.length = 0
    this.#unusualHeads.clear()
    this.#end = 0
    this.#hand = 0
    this.#size = 0
  }

  #find({ basin, name }: Pick<StreamDocument, 'basin' | 'name'>): number | undefined {
    return this.#byName[shardOf(name)]!.get(basin)?.get(name)
  }

  #add({ basin, name }: StreamDocument): number | undefined {
    if (this.#end - this.#freeRows.length >= this.#max && !this.#freeOld()) return undefined
    const row = this.#freeRows.pop() ?? this.#end++
    if (this.#chunks[Math.floor(row / CHUNK_ROWS)] === undefined) {
      this.#chunks.push({
        documents: new Array<StreamDocument | undefined>(CHUNK_ROWS).fill(undefined),
        numbers: new Float64Array(NUMBERS * CHUNK_ROWS),
        states: new Uint8Array(CHUNK_ROWS),
      })
    }
    const basins = this.#byName[shardOf(name)]!
    const names = basins.get(basin) ?? new Map<string, number>()
    basins.set(basin, names.set(name, row))
    return row
  }

  #free(row: number): void {
    const { documents, states } = this.#chunkOf(row)!
    const at = row % CHUNK_ROWS
    const { basin, name } = documents[at]!
    documents[at] = undefined
    this.#setState(states, at, FREE)
    this.#unusualHeads.delete(row)
    this.#freeRows.push(row)
    const basins = this.#byName[shardOf(name)]!
    const names = basins.get(basin)!
    names.delete(name)
    if (names.size === 0) basins.delete(basin)
  }

  /** Frees a row that is idle, preferably for long. Returns false if all that it considers are in use. */
  #freeOld(): boolean {
    let idle: number | undefined
    for (let left = Math.min(SCAN_MAX, this.#end); left > 0; left--) {
      const row = this.#hand
      this.#hand = (row + 1) % this.#end
      const state = this.#stateOf(row)
      if (state === IDLE) {
        this.#chunkOf(row)!.states[row % CHUNK_ROWS] = OLD
        idle ??= row
      } else if (state === OLD) {
        this.#free(row)
        return true
      }
    }
    if (idle !== undefined) this.#free(idle)
    return idle !== undefined
  }

  /** Undefined if all streams were forgotten since the row was used. */
  #chunkOf(row: number): Chunk | undefined {
    return this.#chunks[Math.floor(row / CHUNK_ROWS)]
  }

  #stateOf(row: number): number {
    return this.#chunkOf(row)!.states[row % CHUNK_ROWS]!
  }

  #setState(states: Uint8Array, at: number, state: number): void {
    const wasIdle = states[at]! >= IDLE
    const isIdle = state >= IDLE
    if (wasIdle !== isIdle) this.#size += isIdle ? 1 : -1
    states[at] = state
  }

  /** Writes a head. Returns false, and writes nothing, if the numbers of a row cannot represent it. */
  #writeHead(numbers: Float64Array, first: number, head: Head): boolean {
    const { tail, trimPoint, fencingToken, appendId, appendedAt, trims, extensions } = head
    if (fencingToken !== '' || trims.length > 0 || extensions !== undefined) return false
    const ids = this.#appendIds
    if (!ids.parse(appendId)) return false
    numbers[first + SEQ_NUM] = tail.seqNum
    numbers[first + TIMESTAMP] = tail.timestamp
    numbers[first + TRIM_POINT] = trimPoint
    numbers[first + APPENDED_AT] = appendedAt
    numbers[first + APPEND_PREFIX] = ids.prefix
    numbers[first + APPEND_COUNT] = ids.count
    return true
  }

  /** Returns a head with the members in the order in which appends make them, so that V8 has one shape. */
  #readHead(numbers: Float64Array, first: number, epoch: number): Head {
    return {
      epoch,
      tail: { seqNum: numbers[first + SEQ_NUM]!, timestamp: numbers[first + TIMESTAMP]! },
      trimPoint: numbers[first + TRIM_POINT]!,
      fencingToken: '',
      appendId: this.#appendIds.idOf(numbers[first + APPEND_PREFIX]!, numbers[first + APPEND_COUNT]!),
      appendedAt: numbers[first + APPENDED_AT]!,
      trims: NO_TRIMS,
      extensions: undefined,
      writeState: undefined,
    }
  }

  /** Returns a document that shares its configuration with others. */
  #shared(document: StreamDocument): StreamDocument {
    const key = JSON.stringify(document.config)
    let config = this.#configs.get(key)
    if (config === undefined) {
      if (this.#configs.size >= CONFIGS_MAX) return document
      config = document.config
      this.#configs.set(key, config)
    }
    return config === document.config ? document : { ...document, config }
  }
}

/** Names that differ in their last characters are in different shards. Without one, `&` makes 0 of NaN. */
function shardOf(name: string): number {
  const { length } = name
  return (name.charCodeAt(length - 1) + 10 * name.charCodeAt(length - 2) + length) & (SHARDS - 1)
}
