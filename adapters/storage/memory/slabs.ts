import { UNBUFFERED_BYTES_MAX } from '../../../src/model/bytes.ts'
import type { ReadRange, StoredBlock } from '../../../src/storage/contract.ts'

const SLAB_BYTES = 65_536
/** Offsets and lengths in a slab are multiples of this. */
const UNIT_BYTES = 8
const SLAB_UNITS = SLAB_BYTES / UNIT_BYTES

// The numbers before the data of a block. `NEXT` is the place of the next block of the ring.
const FIRST_SEQ_NUM = 0
const FIRST_TIMESTAMP = 1
const LAST_TIMESTAMP = 2
const EXPIRES_AT = 3
const NEXT = 4
const HEADER_UNITS = 7
// The last ones are words of 32 bits.
const DATA_BYTES = 10
const OWNER = 11
const METERED_BYTES = 12
const RECORDS = 13

/** The owner of memory that has no block. */
const UNOWNED = 0

/** No place. The others are the number of a slab times `SLAB_UNITS`, and an offset: small integers. */
export const NOWHERE = -1

interface Slab {
  readonly number: number
  readonly bytes: Uint8Array
  // Views of the same memory.
  readonly fields: Float64Array
  readonly words: Uint32Array
  /** The units that were handed out, and those of blocks that are kept. */
  used: number
  live: number
}

/**
 * Large buffers for the small blocks of many logs, so that neither the number of objects nor that of buffers
 * grows with the blocks: V8 visits all objects whenever some tens of MiB of buffers were made, in steps of
 * several milliseconds inside of allocations. The data of a block is never written again, because readers
 * have views.
 */
export class Slabs {
  readonly #moveBlocks: (owner: number, slab: number) => void
  readonly #slabs: (Slab | undefined)[] = []
  readonly #freeNumbers: number[] = []
  #current = this.#newSlab()
  /** The offset of the memory that was allocated last, until a block is added. */
  #allocated = NOWHERE
  /** Slabs of which at most half is left. */
  readonly #sparse: Slab[] = []

  /** @param moveBlocks Moves all blocks that an owner has in a slab. */
  constructor(moveBlocks: (owner: number, slab: number) => void) {
    this.#moveBlocks = moveBlocks
  }

  /** The bytes of all slabs. */
  get bytes(): number {
    return (this.#slabs.length - this.#freeNumbers.length) * SLAB_BYTES
  }

  /** Returns memory for the data of a block, with room for its numbers before it. */
  allocate(bytes: number): Uint8Array {
    this.#allocated = (this.#reserve(bytes) + HEADER_UNITS) * UNIT_BYTES
    return new Uint8Array(this.#current.bytes.buffer, this.#allocated, bytes)
  }

  /**
   * Adds a block, copying its data unless it is in memory that was allocated last. Returns the place.
   *
   * @param owner A number above 0.
   * @param last The last block of a ring, after which the block becomes the last one. By default, a new ring.
   */
  add(block: StoredBlock, owner: number, last = NOWHERE): number {
    const { data } = block
    // Asking for the buffer of a short array would create one.
    const isInPlace =
      data.length > UNBUFFERED_BYTES_MAX &&
      data.byteOffset === this.#allocated &&
      data.buffer === this.#current.bytes.buffer
    const unit = isInPlace ? this.#allocated / UNIT_BYTES - HEADER_UNITS : this.#reserve(data.length)
    this.#allocated = NOWHERE
    const slab = this.#current
    if (!isInPlace) slab.bytes.set(data, (unit + HEADER_UNITS) * UNIT_BYTES)
    const { fields, words } = slab
    fields[unit + FIRST_SEQ_NUM] = block.firstSeqNum
    fields[unit + FIRST_TIMESTAMP] = block.firstTimestamp
    fields[unit + LAST_TIMESTAMP] = block.lastTimestamp
    fields[unit + EXPIRES_AT] = block.expiresAt ?? Number.POSITIVE_INFINITY
    const place = slab.number * SLAB_UNITS + unit
    fields[unit + NEXT] = last === NOWHERE ? place : this.#exchangeNext(last, place)
    words[2 * unit + OWNER] = owner
    words[2 * unit + METERED_BYTES] = block.meteredBytes
    words[2 * unit + RECORDS] = block.endSeqNum - block.firstSeqNum
    slab.live += unitsOf(data.length)
    return place
  }

  /** Counts the block at a place as removed. */
  remove(place: number): void {
    const slab = this.#slabOf(place)
    const word = 2 * unitOf(place)
    slab.words[word + OWNER] = UNOWNED
    slab.live -= unitsOf(slab.words[word + DATA_BYTES]!)
    this.#noteSparse(slab)
  }

  /** Copies the block at a place to the current slab, and removes the original. Returns the new place. */
  move(place: number): number {
    const from = this.#slabOf(place).bytes
    const dataBytes = this.dataBytesOf(place)
    const start = unitOf(place) * UNIT_BYTES
    const units = unitsOf(dataBytes)
    const unit = this.#reserve(dataBytes)
    const slab = this.#current
    slab.bytes.set(from.subarray(start, start + units * UNIT_BYTES), unit * UNIT_BYTES)
    slab.live += units
    this.remove(place)
    return slab.number * SLAB_UNITS + unit
  }

  /** Drops the slabs of which at most half is left, and moves their blocks. Never called within a change. */
  compact(): void {
    for (let slab = this.#sparse.pop(); slab !== undefined; slab = this.#sparse.pop()) {
      if (this.#slabs[slab.number] !== slab) continue
      for (let unit = 0; unit < slab.used; unit += unitsOf(slab.words[2 * unit + DATA_BYTES]!)) {
        const owner = slab.words[2 * unit + OWNER]!
        if (owner !== UNOWNED) this.#moveBlocks(owner, slab.number)
      }
      this.#slabs[slab.number] = undefined
      this.#freeNumbers.push(slab.number)
    }
  }

  isIn(place: number, slab: number): boolean {
    return slabNumberOf(place) === slab
  }

  /** Returns the place of the block that follows the one at a place. */
  nextOf(place: number): number {
    return this.#fieldOf(place, NEXT)
  }

  setNext(place: number, next: number): void {
    this.#slabOf(place).fields[unitOf(place) + NEXT] = next
  }

  endSeqNumOf(place: number): number {
    return this.#fieldOf(place, FIRST_SEQ_NUM) + this.#wordOf(place, RECORDS)
  }

  meteredBytesOf(place: number): number {
    return this.#wordOf(place, METERED_BYTES)
  }

  /** Returns the time at which a block expires; infinite for never. */
  expiryOf(place: number): number {
    return this.#fieldOf(place, EXPIRES_AT)
  }

  setExpiry(place: number, expiry: number): void {
    this.#slabOf(place).fields[unitOf(place) + EXPIRES_AT] = expiry
  }

  dataBytesOf(place: number): number {
    return this.#wordOf(place, DATA_BYTES)
  }

  /** Whether a block has records at or after the start of a read. */
  isReached(place: number, from: ReadRange['from']): boolean {
    return 'seqNum' in from
      ? this.endSeqNumOf(place) > from.seqNum
      : this.#fieldOf(place, LAST_TIMESTAMP) >= from.timestamp
  }

  /** Returns a block, with a view of its data. */
  blockAt(place: number): StoredBlock {
    const { bytes, fields, words } = this.#slabOf(place)
    const unit = unitOf(place)
    const start = (unit + HEADER_UNITS) * UNIT_BYTES
    const expiry = fields[unit + EXPIRES_AT]!
    return {
      firstSeqNum: fields[unit + FIRST_SEQ_NUM]!,
      endSeqNum: fields[unit + FIRST_SEQ_NUM]! + words[2 * unit + RECORDS]!,
      firstTimestamp: fields[unit + FIRST_TIMESTAMP]!,
      lastTimestamp: fields[unit + LAST_TIMESTAMP]!,
      meteredBytes: words[2 * unit + METERED_BYTES]!,
      expiresAt: expiry === Number.POSITIVE_INFINITY ? null : expiry,
      data: bytes.subarray(start, start + words[2 * unit + DATA_BYTES]!),
    }
  }

  #slabOf(place: number): Slab {
    return this.#slabs[slabNumberOf(place)]!
  }

  #fieldOf(place: number, field: number): number {
    return this.#slabOf(place).fields[unitOf(place) + field]!
  }

  #wordOf(place: number, word: number): number {
    return this.#slabOf(place).words[2 * unitOf(place) + word]!
  }

  /** Lets another block follow the one at a place. Returns the one that followed it. */
  #exchangeNext(place: number, next: number): number {
    const { fields } = this.#slabOf(place)
    const field = unitOf(place) + NEXT
    const before = fields[field]!
    fields[field] = next
    return before
  }

  /** Returns the offset, in units, of room for a block in the current slab. */
  #reserve(bytes: number): number {
    const units = unitsOf(bytes)
    if (this.#current.used + units > SLAB_UNITS) {
      const full = this.#current
      this.#current = this.#newSlab()
      this.#noteSparse(full)
    }
    const slab = this.#current
    const unit = slab.used
    slab.used += units
    // Also leads to what follows memory that remains without a block.
    slab.words[2 * unit + DATA_BYTES] = bytes
    return unit
  }

  #newSlab(): Slab {
    const buffer = new ArrayBuffer(SLAB_BYTES)
    const number = this.#freeNumbers.pop() ?? this.#slabs.length
    const slab = {
      number,
      bytes: new Uint8Array(buffer),
      fields: new Float64Array(buffer),
      words: new Uint32Array(buffer),
      used: 0,
      live: 0,
    }
    this.#slabs[number] = slab
    return slab
  }

  #noteSparse(slab: Slab): void {
    if (slab !== this.#current && slab.live * 2 <= SLAB_UNITS) this.#sparse.push(slab)
  }
}

function slabNumberOf(place: number): number {
  return Math.floor(place / SLAB_UNITS)
}

/** The remainder would be computed with floating-point numbers, which takes longer than all else here. */
function unitOf(place: number): number {
  return place - slabNumberOf(place) * SLAB_UNITS
}

function unitsOf(dataBytes: number): number {
  return HEADER_UNITS + Math.ceil(dataBytes / UNIT_BYTES)
}
