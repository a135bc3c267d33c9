import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'

const PAGE_BYTES = 65_536
/** Longer entries get a page of their own, because they would waste the end of a shared one. */
const SHARED_BYTES_MAX = PAGE_BYTES / 8
/** The most pages that wait for being used again. */
const SPARE_MAX = 16
/** Slot, length of the key, length of the value. */
const HEADER_BYTES = 10
/** The index grows part by part, so that no insertion waits until all of it is copied. */
const SHARDS = 64
const SHARD_CELLS_MIN = 16

/** The place of an entry is the number of its page times this, and its offset. */
const PLACE_UNIT = 2 ** 32
/** No place, and a number that takes no object in an array of numbers. */
const NOWHERE = 0.5

interface Page {
  readonly number: number
  readonly bytes: Uint8Array
  readonly view: DataView
  /** The offset of the next entry. */
  end: number
  /** Bytes of the entries that are not removed. */
  live: number
}

/** A part of the index: open addressing with linear probing, in pairs of a slot, 0 for none, and a hash. */
interface Shard {
  cells: Uint32Array
  used: number
}

/**
 * Byte strings by key, in a few large buffers, which the garbage collector does not visit: an entry takes
 * about 30 bytes beside its key and value, and no object. An entry keeps its slot number until it is removed.
 * Views are valid until the next change, because buffers are reused: V8 collects all garbage whenever some
 * tens of MiB of new ones were made.
 */
export class PackedTable {
  readonly #pages: (Page | undefined)[] = []
  /** The page to which entries are added. */
  #page: Page | undefined
  readonly #freePages: number[] = []
  readonly #spare: Uint8Array[] = []
  readonly #shards: Shard[] = []
  /** The places by slot. */
  readonly #places: number[] = [NOWHERE]
  readonly #freeSlots: number[] = []
  #size = 0

  constructor() {
    for (let i = 0; i < SHARDS; i++) {
      this.#shards.push({ cells: new Uint32Array(2 * SHARD_CELLS_MIN), used: 0 })
    }
  }

  /** The number of entries. */
  get size(): number {
    return this.#size
  }

  /** The bytes that all pages take. */
  get pageBytes(): number {
    return this.#pages.reduce((sum, page) => sum + (page?.bytes.length ?? 0), 0)
  }

  /** Returns the slot of a key, which is above 0; 0 if it has none. */
  find(key: string): number {
    const wanted = utf8(key)
    const hash = hashOf(wanted)
    const { cells } = this.#shards[hash % SHARDS]!
    const slot = cells[this.#cellOf(cells, hash, wanted)]!
    // Lone surrogates become U+FFFD in UTF-8, which the key of another entry may contain.
    const isOther = wanted.length !== key.length && slot !== 0 && lossyTextOf(this.key(slot)) !== key
    return isOther ? 0 : slot
  }

  /** Sets the value of a key. Returns the slot. */
  set(key: string, value: Uint8Array): number {
    const keyBytes = utf8(key)
    const hash = hashOf(keyBytes)
    const shard = this.#shards[hash % SHARDS]!
    const cell = this.#cellOf(shard.cells, hash, keyBytes)
    const known = shard.cells[cell]!
    const before = known === 0 ? undefined : this.#remove(known)
    const slot = known || (this.#freeSlots.pop() ?? this.#places.length)
    if (known === 0) {
      shard.cells[cell] = slot
      shard.cells[cell + 1] = hash
      this.#size++
      if (++shard.used * 8 > shard.cells.length * 3) grow(shard)
    }
    this.#write(slot, keyBytes, value)
    if (before !== undefined) this.#compact(before)
    return slot
  }

  /** Removes a key. */
  delete(key: string): void {
    const wanted = utf8(key)
    const hash = hashOf(wanted)
    const shard = this.#shards[hash % SHARDS]!
    const cell = this.#cellOf(shard.cells, hash, wanted)
    const slot = shard.cells[cell]!
    if (slot === 0) return
    closeGap(shard.cells, cell)
    shard.used--
    this.#size--
    this.#freeSlots.push(slot)
    this.#compact(this.#remove(slot))
  }

  /** Returns the key of a slot: a view. */
  key(slot: number): Uint8Array {
    const { bytes, view } = this.#pageOf(slot)
    const offset = this.#places[slot]! % PLACE_UNIT
    const start = offset + HEADER_BYTES
    return bytes.subarray(start, start + view.getUint16(offset + 4, true))
  }

  /** Returns the value of a slot: a view. */
  value(slot: number): Uint8Array {
    const { bytes, view } = this.#pageOf(slot)
    const offset = this.#places[slot]! % PLACE_UNIT
    const start = offset + HEADER_BYTES + view.getUint16(offset + 4, true)
    return bytes.subarray(start, start + view.getUint32(offset + 6, true))
  }

  #pageOf(slot: number): Page {
    return this.#pages[Math.floor(this.#places[slot]! / PLACE_UNIT)]!
  }

  /** The cell of a key, or the empty one where it belongs. */
  #cellOf(cells: Uint32Array, hash: number, key: Uint8Array): number {
    let cell = homeOf(cells, hash)
    while (cells[cell] !== 0 && !(cells[cell + 1] === hash && this.#hasKey(cells[cell]!, key))) {
      cell = (cell + 2) & (cells.length - 1)
    }
    return cell
  }

  #hasKey(slot: number, key: Uint8Array): boolean {
    const { bytes, view } = this.#pageOf(slot)
    const offset = this.#places[slot]! % PLACE_UNIT
    if (view.getUint16(offset + 4, true) !== key.length) return false
    for (let i = 0; i < key.length; i++) if (bytes[offset + HEADER_BYTES + i] !== key[i]) return false
    return true
  }

  #write(slot: number, key: Uint8Array, value: Uint8Array): void {
    const { bytes, view } = this.#reserve(slot, HEADER_BYTES + key.length + value.length)
    const offset = this.#places[slot]! % PLACE_UNIT
    view.setUint32(offset, slot, true)
    view.setUint16(offset + 4, key.length, true)
    view.setUint32(offset + 6, value.length, true)
    bytes.set(key, offset + HEADER_BYTES)
    bytes.set(value, offset + HEADER_BYTES + key.length)
  }

  /** Makes room for the entry of a slot, and sets its place. */
  #reserve(slot: number, length: number): Page {
    const isShared = length <= SHARED_BYTES_MAX
    let page = this.#page
    if (!isShared || page === undefined || page.end + length > PAGE_BYTES) {
      const bytes = (isShared && this.#spare.pop()) || new Uint8Array(isShared ? PAGE_BYTES : length)
      const number = this.#freePages.pop() ?? this.#pages.length
      page = { number, bytes, view: new DataView(bytes.buffer), end: 0, live: 0 }
      this.#pages[number] = page
      const full = this.#page
      if (isShared) this.#page = page
      if (isShared && full !== undefined) this.#compact(full.number)
    }
    // Compaction may have used the new page.
    if (isShared) page = this.#page!
    this.#places[slot] = page.number * PLACE_UNIT + page.end
    page.end += length
    page.live += length
    return page
  }

  /** Counts the entry of a slot as removed. Returns the number of its page. */
  #remove(slot: number): number {
    const place = this.#places[slot]!
    const number = Math.floor(place / PLACE_UNIT)
    const page = this.#pages[number]!
    page.live -= lengthOf(page, place % PLACE_UNIT)
    this.#places[slot] = NOWHERE
    return number
  }

  /** Moves the entries of a page of which at most half is left, and drops it. */
  #compact(number: number): void {
    const page = this.#pages[number]
    if (page === undefined || page === this.#page || page.live * 2 > page.bytes.length) return
    for (let at = 0; at < page.end; ) {
      const length = lengthOf(page, at)
      const slot = page.view.getUint32(at, true)
      if (this.#places[slot] === number * PLACE_UNIT + at) {
        const { bytes } = this.#reserve(slot, length)
        bytes.set(page.bytes.subarray(at, at + length), this.#places[slot]! % PLACE_UNIT)
      }
      at += length
    }
    this.#pages[number] = undefined
    this.#freePages.push(number)
    if (page.bytes.length === PAGE_BYTES && this.#spare.length < SPARE_MAX) this.#spare.push(page.bytes)
  }
}

function lengthOf({ view }: Page, offset: number): number {
  return HEADER_BYTES + view.getUint16(offset + 4, true) + view.getUint32(offset + 6, true)
}

/** FNV-1a, with its bits mixed: shard and cell come from different ones. */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193)
  hash ^= hash >>> 15
  return Math.imul(hash, 0x2c1b3c6d) >>> 0
}

function homeOf(cells: Uint32Array, hash: number): number {
  return ((hash >>> 6) << 1) & (cells.length - 1)
}

function grow(shard: Shard): void {
  const { cells } = shard
  const wider = new Uint32Array(2 * cells.length)
  for (let cell = 0; cell < cells.length; cell += 2) {
    if (cells[cell] === 0) continue
    let home = homeOf(wider, cells[cell + 1]!)
    while (wider[home] !== 0) home = (home + 2) & (wider.length - 1)
    wider[home] = cells[cell]!
    wider[home + 1] = cells[cell + 1]!
  }
  shard.cells = wider
}

/** Empties a cell and moves those after it that would not be found any more. */
function closeGap(cells: Uint32Array, emptied: number): void {
  const mask = cells.length - 1
  let gap = emptied
  for (let cell = (gap + 2) & mask; cells[cell] !== 0; cell = (cell + 2) & mask) {
    const distance = (cell - homeOf(cells, cells[cell + 1]!)) & mask
    if (distance < ((cell - gap) & mask)) continue
    cells[gap] = cells[cell]!
    cells[gap + 1] = cells[cell + 1]!
    gap = cell
  }
  cells[gap] = 0
}
