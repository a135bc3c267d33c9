import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import type { StoredBlock } from '../../../src/storage/contract.ts'
import type { BlockList } from './log.ts'

const SLAB_BYTES = 65_536
/** Offsets and lengths in a slab are multiples of this. */
const UNIT_BYTES = 8
const SLAB_UNITS = SLAB_BYTES / UNIT_BYTES

/** Larger logs keep a list of blocks, which finds a block without visiting those before it. */
const LIST_BYTES_MAX = 16_384
const LIST_BLOCKS_MAX = 64

// The numbers before the data of a block. `NEXT` is the place of the next block of the log.
const FIRST_SEQ_NUM = 0
const END_SEQ_NUM = 1
const FIRST_TIMESTAMP = 2
const LAST_TIMESTAMP = 3
const METERED_BYTES = 4
const EXPIRES_AT = 5
const DATA_BYTES = 6
const NEXT = 7
const HEADER_UNITS = 8

/** No place. The others are the number of a slab times `SLAB_UNITS`, and an offset: small integers. */
const NOWHERE = -1

interface Slab {
  readonly number: number
  readonly bytes: Uint8Array
  readonly fields: Float64Array
  /** The units that were handed out, and those of blocks that are kept. */
  used: number
  live: number
  /** The lists of the blocks, once for each block that was added. */
  readonly lists: SlabBlocks[]
}

/**
 * Large buffers for the small blocks of many logs, so that neither the number of objects nor that of buffers
 * grows with the blocks: V8 visits all objects whenever some tens of MiB of buffers were made, in steps of
 * several milliseconds inside of allocations. Memory is never written again, because readers have views.
 */
export class Slabs {
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeNumbers: number[] = []
  #current: Slab | undefined
  /** The offset of the memory that was allocated last, until a block is added. */
  #allocated = NOWHERE
  /** Slabs of which at most half is left. */
  readonly #sparse: Slab[] = []

  /** The bytes of all slabs. */
  get bytes(): number {
    return (this.#slabs.length - this.#freeNumbers.length) * SLAB_BYTES
  }

  /** Memory for the data of a block, with room for its numbers before it. */
  allocate(bytes: number): Uint8Array {
    this.#allocated = this.#reserve(bytes) + HEADER_UNITS * UNIT_BYTES
    const start = this.#allocated
    return this.#current!.bytes.subarray(start, start + bytes)
  }

  /** The slab of a place. */
  at(place: number): Slab {
    return this.#slabs[Math.floor(place / SLAB_UNITS)]!
  }

  /** Adds a block, copying its data unless it is in memory that was allocated last. Returns the place. */
  add(block: StoredBlock, list: SlabBlocks): number {
    const { data } = block
    // Asking for the buffer of a short array would create one.
    const isInPlace =
      data.length > UNBUFFERED_BYTES_MAX &&
      data.byteOffset === this.#allocated &&
      data.buffer === this.#current?.bytes.buffer
    this.#allocated = NOWHERE
    const offset = isInPlace ? data.byteOffset - HEADER_UNITS * UNIT_BYTES : this.#reserve(data.length)
    const slab = this.#current!
    if (!isInPlace) slab.bytes.set(data, offset + HEADER_UNITS * UNIT_BYTES)
    const unit = offset / UNIT_BYTES
    const { fields } = slab
    fields[unit + FIRST_SEQ_NUM] = block.firstSeqNum
    fields[unit + END_SEQ_NUM] = block.endSeqNum
    fields[unit + FIRST_TIMESTAMP] = block.firstTimestamp
    fields[unit + LAST_TIMESTAMP] = block.lastTimestamp
    fields[unit + METERED_BYTES] = block.meteredBytes
    fields[unit + EXPIRES_AT] = block.expiresAt ?? Number.POSITIVE_INFINITY
    fields[unit + DATA_BYTES] = data.length
    fields[unit + NEXT] = NOWHERE
    slab.live += unitsOf(data.length)
    slab.lists.push(list)
    return slab.number * SLAB_UNITS + unit
  }

  /** Counts the block at a place as removed. */
  remove(place: number): void {
    const slab = this.at(place)
    slab.live -= unitsOf(slab.fields[(place % SLAB_UNITS) + DATA_BYTES]!)
    this.#noteSparse(slab)
  }

  /** Drops the slabs of which at most half is left, and moves their blocks. Never called within a change. */
  compact(): void {
    for (let slab = this.#sparse.pop(); slab !== undefined; slab = this.#sparse.pop()) {
      if (this.#slabs[slab.number] !== slab) continue
      for (const list of new Set(slab.lists)) list.move(slab.number)
      this.#slabs[slab.number] = undefined
      this.#freeNumbers.push(slab.number)
    }
  }

  /** Returns the offset of so much memory in the current slab. */
  #reserve(bytes: number): number {
    const units = unitsOf(bytes)
    const full = this.#current
    if (full === undefined || full.used + units > SLAB_UNITS) {
      const buffer = new ArrayBuffer(SLAB_BYTES)
      this.#current = {
        number: this.#freeNumbers.pop() ?? this.#slabs.length,
        bytes: new Uint8Array(buffer),
        fields: new Float64Array(buffer),
        used: 0,
        live: 0,
        lists: [],
      }
      this.#slabs[this.#current.number] = this.#current
      if (full !== undefined) this.#noteSparse(full)
    }
    const slab = this.#current!
    const offset = slab.used * UNIT_BYTES
    slab.used += units
    return offset
  }

  #noteSparse(slab: Slab): void {
    if (slab !== this.#current && slab.live * 2 <= SLAB_UNITS) this.#sparse.push(slab)
  }
}

/** The blocks of a small log in {@link Slabs}: a chain, without an object for a block. */
export class SlabBlocks implements BlockList {
  readonly #slabs: Slabs
  #first = NOWHERE
  #last = NOWHERE
  #bytes = 0
  #count = 0

  constructor(slabs: Slabs) {
    this.#slabs = slabs
  }

  allocate(bytes: number): Uint8Array | undefined {
    return this.#hasRoomFor(bytes) ? this.#slabs.allocate(bytes) : undefined
  }

  /** Whether it stays a small log with this block. */
  takes({ data }: StoredBlock): boolean {
    return this.#hasRoomFor(data.length)
  }

  /** Appends a block. Returns whether it is the first one. */
  add(block: StoredBlock): boolean {
    this.#link(this.#slabs.add(block, this))
    this.#bytes += block.data.length
    this.#count++
    this.#slabs.compact()
    return this.#count === 1
  }

  /** Removes a block, which is found by its first sequence number. */
  delete({ firstSeqNum, data }: StoredBlock): void {
    let before = NOWHERE
    for (let place = this.#first; place !== NOWHERE; before = place, place = this.#fieldOf(place, NEXT)) {
      if (this.#fieldOf(place, FIRST_SEQ_NUM) !== firstSeqNum) continue
      const next = this.#fieldOf(place, NEXT)
      if (before === NOWHERE) this.#first = next
      else this.#setNext(before, next)
      if (next === NOWHERE) this.#last = before
      this.#bytes -= data.length
      this.#count--
      this.#slabs.remove(place)
      this.#slabs.compact()
      return
    }
  }

  first(): StoredBlock | undefined {
    return this.#first === NOWHERE ? undefined : this.#blockAt(this.#first)
  }

  *from(reached: (block: StoredBlock) => boolean): Generator<StoredBlock, void, undefined> {
    let isReached = false
    for (let place = this.#first; place !== NOWHERE; place = this.#fieldOf(place, NEXT)) {
      const block = this.#blockAt(place)
      isReached ||= reached(block)
      if (isReached) yield block
    }
  }

  /** Removes all blocks. */
  clear(): void {
    let place = this.#first
    this.#first = NOWHERE
    this.#last = NOWHERE
    this.#bytes = 0
    this.#count = 0
    while (place !== NOWHERE) {
      const next = this.#fieldOf(place, NEXT)
      this.#slabs.remove(place)
      place = next
    }
    this.#slabs.compact()
  }

  /** Moves the blocks in a slab to the current one. */
  move(slab: number): void {
    let place = this.#first
    this.#first = NOWHERE
    this.#last = NOWHERE
    while (place !== NOWHERE) {
      const next = this.#fieldOf(place, NEXT)
      const isMoved = Math.floor(place / SLAB_UNITS) === slab
      this.#link(isMoved ? this.#slabs.add(this.#blockAt(place), this) : place)
      place = next
    }
  }

  #hasRoomFor(bytes: number): boolean {
    return this.#bytes + bytes <= LIST_BYTES_MAX && this.#count < LIST_BLOCKS_MAX
  }

  #link(place: number): void {
    if (this.#last === NOWHERE) this.#first = place
    else this.#setNext(this.#last, place)
    this.#last = place
  }

  #fieldOf(place: number, field: number): number {
    return this.#slabs.at(place).fields[(place % SLAB_UNITS) + field]!
  }

  #setNext(place: number, next: number): void {
    this.#slabs.at(place).fields[(place % SLAB_UNITS) + NEXT] = next
  }

  #blockAt(place: number): StoredBlock {
    const { bytes, fields } = this.#slabs.at(place)
    const unit = place % SLAB_UNITS
    const start = (unit + HEADER_UNITS) * UNIT_BYTES
    const expiresAt = fields[unit + EXPIRES_AT]!
    return {
      firstSeqNum: fields[unit + FIRST_SEQ_NUM]!,
      endSeqNum: fields[unit + END_SEQ_NUM]!,
      firstTimestamp: fields[unit + FIRST_TIMESTAMP]!,
      lastTimestamp: fields[unit + LAST_TIMESTAMP]!,
      meteredBytes: fields[unit + METERED_BYTES]!,
      expiresAt: expiresAt === Number.POSITIVE_INFINITY ? null : expiresAt,
      data: bytes.subarray(start, start + fields[unit + DATA_BYTES]!),
    }
  }
}

function unitsOf(dataBytes: number): number {
  return HEADER_UNITS + Math.ceil(dataBytes / UNIT_BYTES)
}
