import { RecentMap } from '../../../../src/storage/recent-map.ts'

/** Items in ascending order as a checkpoint stores them: decoded on use, because most are never used. */
export interface StoredPage {
  readonly bytes: Buffer
  /** The offset of each item, and the end of the last one. */
  readonly starts: Uint32Array
}

/** The place of the frame of a page in the file of its checkpoint. */
export interface PagePlace {
  readonly offset: number
  /** Length of the frame. */
  readonly bytes: number
}

/** Stands for the frame of an empty bucket of hashes. */
export const EMPTY_BUCKET: PagePlace = { offset: 0, bytes: 0 }

/** The places of the frames of a list. */
export class PagePlaces {
  readonly #offsets = new NumberList()
  readonly #bytes = new NumberList()

  get count(): number {
    return this.#offsets.length
  }

  add({ offset, bytes }: PagePlace): void {
    this.#offsets.push(offset)
    this.#bytes.push(bytes)
  }

  at(index: number): PagePlace {
    return { offset: this.#offsets.at(index), bytes: this.#bytes.at(index) }
  }
}

/** Reads the frames of a checkpoint. */
export interface PageReader {
  /**
   * Reads a frame and decodes its payload. Rejects with `StorageFailure` of kind `corrupt` if it is damaged,
   * or if `decode` throws.
   */
  read<Page>(place: PagePlace, decode: (payload: Buffer) => Page): Promise<Page>
  /**
   * Reads a frame and returns what `search` returns, at once if the read completes at once. Throws or rejects
   * as {@link read} does. The result must not refer to the payload, whose memory is used again.
   */
  find<Item>(place: PagePlace, search: (payload: Buffer) => Item): Item | Promise<Item>
  /**
   * Reads frames that follow one another, in one call of the system, and decodes their payloads. Resolves to
   * those before the first damaged one.
   */
  readAhead<Page>(places: readonly PagePlace[], decode: (payload: Buffer) => Page): Promise<Page[]>
}

/** How many pages of a list stay in memory after they were loaded. */
const RECENT_PAGES = 128
/** A larger page, which has a single item, is read each time. */
const RECENT_BYTES_MAX = 64 * 1024
/** How many of the latest searched pages are remembered. */
const SEARCHED_PAGES = 16
/** How many pages, and bytes of them, are read at once. */
const AHEAD_PAGES_MAX = RECENT_PAGES / 2
const AHEAD_BYTES_MAX = 1_048_576

/** The pages of a list: those of a checkpoint are read when they are used, others are kept. */
export class StoredPages {
  readonly #itemBytesOf: (payload: Buffer) => Buffer
  readonly #decode: (payload: Buffer) => StoredPage
  readonly #kept: StoredPage[] = []
  readonly #recent = new RecentMap<number, StoredPage>(RECENT_PAGES)
  /** The pages that are being read, so that calls which need the same one read and decode it once. */
  readonly #loading = new Map<number, Promise<StoredPage>>()
  /** The reads of several pages, by the first one. */
  readonly #readingAhead = new Map<number, Promise<void>>()
  readonly #read: PageReader | undefined
  readonly #places: PagePlaces
  /** The pages that {@link find} read last without keeping them, as a ring; -1 for none. */
  readonly #searched = new Int32Array(SEARCHED_PAGES).fill(-1)
  #searches = 0

  /**
   * @param itemBytesOf Returns the items of the payload of a frame: a view.
   * @param pageOf Returns the page with these items.
   * @param places The pages that are read on use.
   */
  constructor(
    itemBytesOf: (payload: Buffer) => Buffer,
    pageOf: (items: Buffer) => StoredPage,
    read: PageReader | undefined,
    places = new PagePlaces(),
  ) {
    this.#itemBytesOf = itemBytesOf
    this.#decode = (payload) => pageOf(itemBytesOf(payload))
    this.#read = read
    this.#places = places
  }

  get count(): number {
    return this.#kept.length + this.#places.count
  }

  /** Adds a page that is kept. There must be none that are read on use. */
  add(page: StoredPage): void {
    this.#kept.push(page)
  }

  at(index: number): StoredPage | Promise<StoredPage> {
    return this.#inMemory(index) ?? this.#loadOnce(index)
  }

  /**
   * Returns what `search` returns for the items of a page. The result must not refer to their bytes. Keeps a
   * page only if one of the last calls read it too: random look-ups would fill the cache with pages that are
   * not used again. Throws or rejects as {@link PageReader.find} does.
   */
  find<Item>(index: number, search: (items: Buffer) => Item): Item | Promise<Item> {
    const page = this.#inMemory(index)
    if (page !== undefined) return search(page.bytes)
    if (this.#searched.includes(index) || this.#loading.has(index)) {
      return this.#loadOnce(index).then(({ bytes }) => search(bytes))
    }
    this.#searched[this.#searches++ % this.#searched.length] = index
    return this.#read!.find(this.#places.at(index), (payload) => search(this.#itemBytesOf(payload)))
  }

  #inMemory(index: number): StoredPage | undefined {
    return this.#kept[index] ?? this.#recent.get(index)
  }

  #loadOnce(index: number): Promise<StoredPage> {
    let loading = this.#loading.get(index)
    if (loading === undefined) {
      loading = this.#load(index, this.#places.at(index)).finally(() => this.#loading.delete(index))
      this.#loading.set(index, loading)
    }
    return loading
  }

  /**
   * Reads pages from an index on, up to `end`, a limited number of them at once, so that {@link at} finds
   * them. A page that cannot be read is left to it. Returns undefined if there is nothing to read.
   */
  readAhead(start: number, end: number): Promise<void> | undefined {
    const places: PagePlace[] = []
    let bytes = 0
    for (let index = start; index < end && places.length < AHEAD_PAGES_MAX; index++) {
      if (this.#isInMemory(index)) break
      const place = this.#places.at(index)
      bytes += place.bytes
      if (place.bytes > RECENT_BYTES_MAX || bytes > AHEAD_BYTES_MAX) break
      places.push(place)
    }
    if (places.length < 2) return undefined
    let reading = this.#readingAhead.get(start)
    if (reading === undefined) {
      reading = this.#loadAll(start, places).finally(() => this.#readingAhead.delete(start))
      this.#readingAhead.set(start, reading)
    }
    return reading
  }

  #isInMemory(index: number): boolean {
    return index < this.#kept.length || this.#recent.has(index) || this.#loading.has(index)
  }

  async #load(index: number, place: PagePlace): Promise<StoredPage> {
    const page = await this.#read!.read(place, this.#decode)
    if (place.bytes <= RECENT_BYTES_MAX) this.#recent.set(index, page)
    return page
  }

  async #loadAll(first: number, places: readonly PagePlace[]): Promise<void> {
    try {
      const pages = await this.#read!.readAhead(places, this.#decode)
      for (const [i, page] of pages.entries()) this.#recent.set(first + i, page)
    } catch {
      // The call that needs one of the pages reports it.
    }
  }
}

/** The length of the page in items. */
export function itemsOf({ starts }: StoredPage): number {
  return starts.length - 1
}

/** The bytes of an item: a view. */
export function itemAt({ bytes, starts }: StoredPage, index: number): Buffer {
  return bytes.subarray(starts[index], starts[index + 1])
}

/** Iterates over the items of a page. */
export function* itemsIn(page: StoredPage, from = 0): Generator<Buffer, void, undefined> {
  for (let index = from; index < itemsOf(page); index++) yield itemAt(page, index)
}

/** The smallest index below `count` for which `reached` is true, or `count`. `reached` must be monotonic. */
export function lowestIndex(count: number, reached: (index: number) => boolean): number {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (reached(middle)) high = middle
    else low = middle + 1
  }
  return low
}

/** A growing list of numbers, outside of the heap that a garbage collection visits. */
export class NumberList {
  #numbers: Float64Array<ArrayBuffer>
  #length = 0

  constructor(capacity = 64) {
    this.#numbers = new Float64Array(capacity)
  }

  get length(): number {
    return this.#length
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Float64Array(2 * this.#length)
      larger.set(this.#numbers)
      this.#numbers = larger
    }
    this.#numbers[this.#length++] = number
  }

  /** The number at an index below the length. */
  at(index: number): number {
    return this.#numbers[index]!
  }
}
