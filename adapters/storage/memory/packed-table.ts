import { SlotIndex } from './slot-index.ts'

const PAGE_BYTES = 65_536
/** Longer entries get a page of their own, because they would waste the end of a shared one. */
const SHARED_BYTES_MAX = PAGE_BYTES / 8
/** The most pages that wait for being used again. */
const SPARE_MAX = 16
/** Slot, length of the key, length of the value. */
const HEADER_BYTES = 10

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
  readonly #index = new SlotIndex<Uint8Array>((slot, key) => this.#hasKey(slot, key))
  readonly #places: Places[] = []
  /** Slots are below this. */
  #slotsEnd = 1
  readonly #freeSlots: number[] = []

  /** The number of entries. */
  get size(): number {
    return this.#index.size
  }

  /** The bytes that all pages take. */
  get pageBytes(): number {
    return this.#pages.reduce((sum, page) => sum + (page?.bytes.length ?? 0), 0)
  }

  /** Returns the slot of a key, which is above 0; 0 if it has none. */
  find(key: Uint8Array): number {
    return this.#index.find(hashOf(key), key)
  }

  /** Sets the value of a key. Returns the slot. */
  set(key: Uint8Array, value: Uint8Array): number {
    const hash = hashOf(key)
    const known = this.#index.find(hash, key)
    const before = known === 0 ? undefined : this.#remove(known)
    const slot = known || (this.#freeSlots.pop() ?? this.#newSlot())
    if (known === 0) this.#index.add(hash, slot)
    this.#write(slot, key, value)
    if (before !== undefined) this.#compact(before)
    return slot
  }

  /** Removes a key. */
  delete(key: Uint8Array): void {
    const slot = this.#index.delete(hashOf(key), key)
    if (slot === 0) return
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

/** FNV-1a, with its bits mixed: {@link SlotIndex} takes shard and cell from different ones. */
function hashOf(bytes: Uint8Array): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < bytes.length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193)
  hash ^= hash >>> 15
  return Math.imul(hash, 0x2c1b3c6d) >>> 0
}
