/** Items in ascending order as a checkpoint stores them: decoded on use, because most are never used. */
export interface StoredPage {
  readonly bytes: Buffer
  /** Where each item begins, and where the last one ends. */
  readonly starts: Uint32Array
}

/** The length of the page in items. */
export function itemsOf({ starts }: StoredPage): number {
  return starts.length - 1
}

/** The bytes of an item: a view. */
export function itemAt({ bytes, starts }: StoredPage, index: number): Buffer {
  return bytes.subarray(starts[index], starts[index + 1])
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
