import { orderedKeyValueStorage } from '../../../adapters/storage/index.ts'
import type { OrderedKeyValueOptions } from '../../../adapters/storage/key-value/storage.ts'
import type {
  KeyRange,
  KeyValue,
  KeyValueBatch,
  OrderedKeyValueStore,
} from '../../../adapters/storage/key-value/store.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'

/** An ordered map in memory. Several sessions may use one, like the processes that share a database. */
export class OrderedMap {
  readonly #keys = new OrderedList<string>((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  readonly #values = new Map<string, Uint8Array>()
  /** The batches that were given to `transact`. */
  readonly batches: KeyValueBatch[] = []

  get size(): number {
    return this.#keys.size
  }

  get entries(): KeyValue[] {
    return [...this.#keys.from(() => true)].map((key) => [bytesOf(key), this.#values.get(key)!])
  }

  /** Changes a value without a batch. */
  set(key: Uint8Array, value: Uint8Array | undefined): void {
    const text = textOf(key)
    if (value === undefined) {
      if (this.#values.delete(text)) this.#keys.delete(text)
      return
    }
    if (!this.#values.has(text)) this.#keys.add(text)
    this.#values.set(text, value)
  }

  /** A connection to the map. Every call takes a turn of the event loop. */
  connect(): OrderedKeyValueStore {
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
    return {
      get: async (key) => {
        await turn()
        return this.#values.get(textOf(key))
      },
      scan: async (range) => {
        await turn()
        return this.#scan(range)
      },
      transact: async (batch) => {
        await turn()
        return this.#transact(batch)
      },
      close: turn,
    }
  }

  #scan({ from, to, limit }: KeyRange): KeyValue[] {
    const found: KeyValue[] = []
    const [first, end] = [textOf(from), textOf(to)]
    for (const key of this.#keys.from((key) => key >= first)) {
      if (key >= end || found.length >= limit) break
      found.push([bytesOf(key), this.#values.get(key)!])
    }
    return found
  }

  #transact(batch: KeyValueBatch): boolean {
    this.batches.push(batch)
    const { expected, puts, deletes } = batch
    const keys = [...puts.map(([key]) => key), ...deletes].map(textOf)
    if (new Set(keys).size < keys.length) throw new Error('a batch contains a key twice')
    const holds = expected.every(([key, value]) => {
      const current = this.#values.get(textOf(key))
      return current === undefined || value === undefined ? current === value : isSame(current, value)
    })
    if (!holds) return false
    for (const [key, value] of puts) this.set(key, value)
    for (const key of deletes) this.set(key, undefined)
    return true
  }
}

/** A storage in an ordered map. */
export function orderedMapStorage(
  map: OrderedMap,
  options: Partial<OrderedKeyValueOptions> = {},
): ReturnType<typeof orderedKeyValueStorage> {
  return orderedKeyValueStorage({
    name: 'ordered-map',
    durability: 'process-crash',
    open: async () => map.connect(),
    ...options,
  })
}

/** One character for each byte, so that the order is that of the bytes. */
function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes)
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0))
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}
