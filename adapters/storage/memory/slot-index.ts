/** The index grows part by part, so that no insertion waits until all of it is copied. */
const SHARDS = 64
const SHARD_CELLS_MIN = 16

/** A part of the index: open addressing with linear probing, in pairs of a slot, 0 for none, and a hash. */
interface Shard {
  cells: Uint32Array
  used: number
}

/**
 * The numbers of slots by the hash of the key that each has, without an object for each. The keys are stored
 * elsewhere. Hashes have 32 bits, of which shard and cell come from different ones.
 */
export class SlotIndex<Key> {
  readonly #hasKey: (slot: number, key: Key) => boolean
  readonly #shards: Shard[] = []
  #size = 0

  /** @param hasKey Returns whether a slot has a key. */
  constructor(hasKey: (slot: number, key: Key) => boolean) {
    this.#hasKey = hasKey
    for (let i = 0; i < SHARDS; i++) {
      this.#shards.push({ cells: new Uint32Array(2 * SHARD_CELLS_MIN), used: 0 })
    }
  }

  get size(): number {
    return this.#size
  }

  /** Returns the slot of a key; 0 if it has none. */
  find(hash: number, key: Key): number {
    const { cells } = this.#shards[hash & (SHARDS - 1)]!
    return cells[this.#cellOf(cells, hash, key)]!
  }

  /** Adds a slot, above 0, whose key has none. */
  add(hash: number, slot: number): void {
    const shard = this.#shards[hash & (SHARDS - 1)]!
    insert(shard.cells, hash, slot)
    this.#size++
    if (++shard.used * 8 > shard.cells.length * 3) grow(shard)
  }

  /** Removes a key. Returns its slot, which must still have it; 0 if it has none. */
  delete(hash: number, key: Key): number {
    const shard = this.#shards[hash & (SHARDS - 1)]!
    const cell = this.#cellOf(shard.cells, hash, key)
    const slot = shard.cells[cell]!
    if (slot === 0) return 0
    closeGap(shard.cells, cell)
    shard.used--
    this.#size--
    return slot
  }

  /** The cell of a key, or the empty one where it belongs. */
  #cellOf(cells: Uint32Array, hash: number, key: Key): number {
    let cell = homeOf(cells, hash)
    while (cells[cell] !== 0 && !(cells[cell + 1] === hash && this.#hasKey(cells[cell]!, key))) {
      cell = (cell + 2) & (cells.length - 1)
    }
    return cell
  }
}

function homeOf(cells: Uint32Array, hash: number): number {
  return ((hash >>> 6) << 1) & (cells.length - 1)
}

function insert(cells: Uint32Array, hash: number, slot: number): void {
  let cell = homeOf(cells, hash)
  while (cells[cell] !== 0) cell = (cell + 2) & (cells.length - 1)
  cells[cell] = slot
  cells[cell + 1] = hash
}

function grow(shard: Shard): void {
  const { cells } = shard
  const wider = new Uint32Array(2 * cells.length)
  for (let cell = 0; cell < cells.length; cell += 2) {
    if (cells[cell] !== 0) insert(wider, cells[cell + 1]!, cells[cell]!)
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
