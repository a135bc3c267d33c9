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

/**
 * Reads a frame and decodes its payload. Rejects with `StorageFailure` of kind `corrupt` if it is damaged, or
 * if `decode` throws.
 */
export type PageReader = <Page>(place: PagePlace, decode: (payload: Buffer) => Page) => Promise<Page>

/** How many pages of a list stay in memory after they were read. */
const RECENT_PAGES = 128
/** A larger page, which has a single item, is read each time. */
const RECENT_BYTES_MAX = 64 * 1024

/** The pages of a list: those of a checkpoint are read when they are used, others are kept. */
export class StoredPages {
  readonly #decode: (payload: Buffer) => StoredPage
  readonly #pages: (StoredPage | PagePlace)[] = []
  readonly #recent = new RecentMap<number, StoredPage>(RECENT_PAGES)
  /** The pages that are being read, so that calls which need the same one read and decode it once. */
  readonly #loading = new Map<number, Promise<StoredPage>>()
  readonly #read: PageReader | undefined

  /** @param decode Decodes the payload of a frame. */
  constructor(decode: (payload: Buffer) => StoredPage, read: PageReader | undefined) {
    this.#decode = decode
    this.#read = read
  }

  get count(): number {
    return this.#pages.length
  }

  add(page: StoredPage | PagePlace): void {
    this.#pages.push(page)
  }

  at(index: number): StoredPage | Promise<StoredPage> {
    const page = this.#recent.get(index) ?? this.#pages[index]!
    if ('starts' in page) return page
    let loading = this.#loading.get(index)
    if (loading === undefined) {
      loading = this.#load(index, page).finally(() => this.#loading.delete(index))
      this.#loading.set(index, loading)
    }
    return loading
  }

  async #load(index: number, place: PagePlace): Promise<StoredPage> {
    const page = await this.#read!(place, this.#decode)
    if (place.bytes <= RECENT_BYTES_MAX) this.#recent.set(index, page)
    return page
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
