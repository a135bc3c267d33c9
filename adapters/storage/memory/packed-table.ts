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

/** Places are in arrays of this length: one array for all would be copied as it grows. */
const PLACES = 4_096

interface Page {
  /** Above 0. */
  readonly number: number
  readonly bytes: Uint8Array
  readonly view: DataView
  /** The offset of the next entry. */
  end: number
  /** Bytes of the entries that are not removed. */
  live: number
}

/** The places of the entries of {@link PLACES} slots. */
interface Places {
  /** 0: the slot is free. */
  readonly pages: Uint32Array
  readonly offsets: Uint16Array
}

/** A part of the index: open addressing with linear probing, in pairs of a slot, 0 for none, and a hash. */
interface Shard {
  cells: Uint32Array
  used: number
}

/**
 * Byte strings by key, in a few large buffers, which the garbage collector does not visit: an entry takes
 * about 35 bytes beside its key and value, and no object. An entry keeps its slot number until it is removed.
 * Views are valid until the next change, because buffers are reused: V8 collects all garbage whenever some
 * tens of MiB of new ones were made.
 */
export class PackedTable {
  /** The pages by number. */
  readonly #pages: (Page | undefined)[] = [undefined]
  /** The page to which entries are added. */
  #page: Page | undefined
  readonly #freePages: number[] = []
  readonly #spare: Uint8Array[] = []
  readonly #shards: Shard[] = []
  readonly #places: Places[] = []
  /** Slots are below this. */
  #slotsEnd = 1
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
  find(key: Uint8Array): number {
    const hash = hashOf(key)
    const { cells } = this.#shards[hash % SHARDS]!
    return cells[this.#cellOf(cells, hash, key)]!
  }

  /** Sets the value of a key. Returns the slot. */
  set(key: Uint8Array, value: Uint8Array): number {
    const hash = hashOf(key)
    const shard = this.#shards[hash % SHARDS]!
    const cell = this.#cellOf(shard.cells, hash, key)
    const known = shard.cells[cell]!
    const before = known === 0 ? undefined : this.#remove(known)
    const slot = known || (this.#freeSlots.pop() ?? this.#newSlot())
    if (known === 0) {
      shard.cells[cell] = slot
      shard.cells[cell + 1] = hash
      this.#size++
      if (++shard.used * 8 > shard.cells.length * 3) grow(shard)
    }
    this.#write(slot, key, value)
    if (before !== undefined) this.#compact(before)
    return slot
  }

  /** Removes a key. */
  delete(key: Uint8Array): void {
    const hash = hashOf(key)
    const shard = this.#shards[hash % SHARDS]!
    const cell = this.#cellOf(shard.cells, hash, key)
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
    const offset = this.#offsetOf(slot)
    const start = offset + HEADER_BYTES
    return bytes.subarray(start, start + view.getUint16(offset + 4, true))
  }

  /** Returns the value of a slot: a view. */
  value(slot: number): Uint8Array {
    const { bytes, view } = this.#pageOf(slot)
    const offset = this.#offsetOf(slot)
    const start = offset + HEADER_BYTES + view.getUint16(offset + 4, true)
    return bytes.subarray(start, start + view.getUint32(offset + 6, true))
  }

  #newSlot(): number {
    const slot = this.#slotsEnd++
    if (this.#places[Math.floor(slot / PLACES)] === undefined) {
      this.#places.push({ pages: new Uint32Array(PLACES), offsets: new Uint16Array(PLACES) })
    }
    return slot
  }

  #pageOf(slot: number): Page {
    return this.#pages[this.#places[Math.floor(slot / PLACES)]!.pages[slot % PLACES]!]!
  }

  #offsetOf(slot: number): number {
    return this.#places[Math.floor(slot / PLACES)]!.offsets[slot % PLACES]!
  }

  #setPlace(slot: number, page: number, offset: number): void {
    const { pages, offsets } = this.#places[Math.floor(slot / PLACES)]!
    pages[slot % PLACES] = page
    offsets[slot % PLACES] = offset
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
    const offset = this.#offsetOf(slot)
    if (view.getUint16(offset + 4, true) !== key.length) return false
    for (let i = 0; i < key.length; i++) if (bytes[offset + HEADER_BYTES + i] !== key[i]) return false
    return true
  }

  #write(slot: number, key: Uint8Array, value: Uint8Array): void {
    const { bytes, view } = this.#reserve(slot, HEADER_BYTES + key.length + value.length)
    const offset = this.#offsetOf(slot)
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
    this.#setPlace(slot, page.number, page.end)
    page.end += length
    page.live += length
    return page
  }

  /** Counts the entry of a slot as removed. Returns the number of its page. */
  #remove(slot: number): number {
    const page = this.#pageOf(slot)
    page.live -= lengthOf(page, this.#offsetOf(slot))
    this.#setPlace(slot, 0, 0)
    return page.number
  }

  /** Moves the entries of a page of which at most half is left, and drops it. */
  #compact(number: number): void {
    const page = this.#pages[number]
    if (page === undefined || page === this.#page || page.live * 2 > page.bytes.length) return
    for (let at = 0; at < page.end; ) {
      const length = lengthOf(page, at)
      const slot = page.view.getUint32(at, true)
      if (this.#pageOf(slot) === page && this.#offsetOf(slot) === at) {
        const { bytes } = this.#reserve(slot, length)
        bytes.set(page.bytes.subarray(at, at + length), this.#offsetOf(slot))
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
