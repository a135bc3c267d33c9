import type { Head, HeadIdentity } from '../../../src/storage/contract.ts'
import { AppendIds } from './append-ids.ts'
import { idOfWords, WORDS } from './packed-ids.ts'
import { NOWHERE } from './slabs.ts'

/** One array for all rows would be copied as it grows. */
const CHUNK_BITS = 12
const CHUNK_ROWS = 2 ** CHUNK_BITS

// The numbers of a row in units of 8 bytes, after the four words of its id. `LAST` is the place of its last
// block.
const SEQ_NUM = 2
const TIMESTAMP = 3
const APPENDED_AT = 4
const APPEND_COUNT = 5
const LAST = 6
const ROW_UNITS = 9
// Words of 32 bits.
const EPOCH = 14
const METERED_BYTES = 15
// Words of 16 bits.
const APPEND_PREFIX = 32
const BLOCKS = 33
const DATA_BYTES = 34
const IS_RARE = 35

const EPOCH_MAX = 2 ** 32 - 1

const NO_TRIMS: Head['trims'] = Object.freeze([])

/** {@link CHUNK_ROWS} rows. */
interface Chunk {
  // Views of the same memory.
  readonly fields: Float64Array
  readonly words: Uint32Array
  readonly shorts: Uint16Array
}

/** The fields that few heads have. */
type RareFields = Partial<
  Pick<Head, 'epoch' | 'trimPoint' | 'fencingToken' | 'appendId' | 'trims' | 'extensions' | 'writeState'>
>

/**
 * The ids and heads of small logs, and what their blocks add up to: a row of 72 bytes for each in a few large
 * arrays, which a garbage collector does not visit and appends change in place. Fields that few heads have
 * are in objects. A row keeps its number, which is above 0, until it is removed.
 */
export class LogRows {
  readonly #chunks: Chunk[] = []
  readonly #appendIds = new AppendIds()
  readonly #rare = new Map<number, RareFields>()
  readonly #free: number[] = []
  /** Numbers are below this. */
  #end = 1

  /** Adds a row without blocks. Returns its number. */
  add(id: Uint32Array, head: Head): number {
    const row = this.#free.pop() ?? this.#newRow()
    const { fields, words } = this.#chunkOf(row)
    const at = unitOf(row)
    words.set(id, 2 * at)
    fields[at + LAST] = NOWHERE
    this.setHead(row, head)
    return row
  }

  /** Removes a row that has no blocks. Its sums are 0 when its number is used again. */
  remove(row: number): void {
    this.#rare.delete(row)
    this.#free.push(row)
  }

  /** Returns whether a row has an id. */
  hasId(row: number, id: Uint32Array): boolean {
    const { words } = this.#chunkOf(row)
    const at = unitOf(row) * 2
    return (
      words[at] === id[0] && words[at + 1] === id[1] && words[at + 2] === id[2] && words[at + 3] === id[3]
    )
  }

  idOf(row: number): string {
    const at = unitOf(row) * 2
    return idOfWords(this.#chunkOf(row).words.subarray(at, at + WORDS))
  }

  /** Returns the head of a row. Its trims, extensions and write state must not be handed out. */
  headOf(row: number): Head {
    const { fields, words, shorts } = this.#chunkOf(row)
    const at = unitOf(row)
    return {
      epoch: words[2 * at + EPOCH]!,
      tail: { seqNum: fields[at + SEQ_NUM]!, timestamp: fields[at + TIMESTAMP]! },
      trimPoint: 0,
      fencingToken: '',
      appendId: this.#appendIds.idOf(shorts[4 * at + APPEND_PREFIX]!, fields[at + APPEND_COUNT]!),
      appendedAt: fields[at + APPENDED_AT]!,
      trims: NO_TRIMS,
      ...this.rareOf(row),
    }
  }

  setHead(row: number, head: Head): void {
    const { fields, words, shorts } = this.#chunkOf(row)
    const at = unitOf(row)
    const { epoch, tail, trimPoint, fencingToken, appendId, appendedAt, trims, extensions, writeState } = head
    fields[at + SEQ_NUM] = tail.seqNum
    fields[at + TIMESTAMP] = tail.timestamp
    fields[at + APPENDED_AT] = appendedAt
    words[2 * at + EPOCH] = epoch
    const ids = this.#appendIds
    const isParsed = ids.parse(appendId)
    shorts[4 * at + APPEND_PREFIX] = ids.prefix
    fields[at + APPEND_COUNT] = ids.count
    const isRare =
      !isParsed ||
      trimPoint !== 0 ||
      fencingToken !== '' ||
      trims.length > 0 ||
      extensions !== undefined ||
      writeState !== undefined ||
      epoch > EPOCH_MAX
    if (!isRare && shorts[4 * at + IS_RARE] === 0) return
    shorts[4 * at + IS_RARE] = isRare ? 1 : 0
    if (!isRare) {
      this.#rare.delete(row)
      return
    }
    this.#rare.set(row, {
      ...(epoch > EPOCH_MAX && { epoch }),
      ...(trimPoint !== 0 && { trimPoint }),
      ...(fencingToken !== '' && { fencingToken }),
      ...(!isParsed && { appendId }),
      ...(trims.length > 0 && { trims }),
      ...(extensions !== undefined && { extensions }),
      ...(writeState !== undefined && { writeState }),
    })
  }

  /** Returns whether a row has the head that an append expects, without making a head. */
  hasHead(row: number, { epoch, seqNum, appendId }: HeadIdentity): boolean {
    const { fields, words, shorts } = this.#chunkOf(row)
    const at = unitOf(row)
    if (fields[at + SEQ_NUM] !== seqNum) return false
    const rare = this.rareOf(row)
    if ((rare?.epoch ?? words[2 * at + EPOCH]) !== epoch) return false
    return rare?.appendId === undefined
      ? this.#appendIds.isSame(appendId, shorts[4 * at + APPEND_PREFIX]!, fields[at + APPEND_COUNT]!)
      : rare.appendId === appendId
  }

  /** Returns the fields of a head that few heads have. */
  rareOf(row: number): RareFields | undefined {
    const isRare = this.#chunkOf(row).shorts[unitOf(row) * 4 + IS_RARE] !== 0
    return isRare ? this.#rare.get(row) : undefined
  }

  /** Returns the place of the last block; `NOWHERE` if there is none. */
  lastOf(row: number): number {
    return this.#chunkOf(row).fields[unitOf(row) + LAST]!
  }

  setLast(row: number, place: number): void {
    this.#chunkOf(row).fields[unitOf(row) + LAST] = place
  }

  blocksOf(row: number): number {
    return this.#chunkOf(row).shorts[unitOf(row) * 4 + BLOCKS]!
  }

  /** Returns the bytes of the data of all blocks. */
  dataBytesOf(row: number): number {
    return this.#chunkOf(row).shorts[unitOf(row) * 4 + DATA_BYTES]!
  }

  meteredBytesOf(row: number): number {
    return this.#chunkOf(row).words[unitOf(row) * 2 + METERED_BYTES]!
  }

  /** Adds a block to the sums of a row; with a sign of -1, subtracts it. */
  count(row: number, dataBytes: number, meteredBytes: number, sign = 1): void {
    const { words, shorts } = this.#chunkOf(row)
    const at = unitOf(row)
    shorts[4 * at + BLOCKS]! += sign
    shorts[4 * at + DATA_BYTES]! += sign * dataBytes
    words[2 * at + METERED_BYTES]! += sign * meteredBytes
  }

  #newRow(): number {
    const row = this.#end++
    if (this.#chunks[row >>> CHUNK_BITS] === undefined) {
      const fields = new Float64Array(CHUNK_ROWS * ROW_UNITS)
      const { buffer } = fields
      this.#chunks.push({ fields, words: new Uint32Array(buffer), shorts: new Uint16Array(buffer) })
    }
    return row
  }

  #chunkOf(row: number): Chunk {
    return this.#chunks[row >>> CHUNK_BITS]!
  }
}

/** The offset of a row in its chunk. */
function unitOf(row: number): number {
  return (row & (CHUNK_ROWS - 1)) * ROW_UNITS
}
