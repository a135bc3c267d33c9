import { compareUtf8, utf8 } from '../../../src/model/bytes.ts'
import type { ListRange } from '../../../src/storage/contract.ts'
import { lowerBound, OrderedList, RecentMap } from '../../../src/storage/ordered-list.ts'

/** Entries that were decoded stay decoded as long as they are among so many. */
const DECODED_MAX = 4_096
/** Length of the entry and of its key, and the time when it is due. */
const ENTRY_HEADER_BYTES = 16

/** How the values of a table are stored. */
export interface EntryCodec<Value> {
  /** To JSON. */
  encode(value: Value): unknown
  decode(encoded: unknown): Value
  /** When there is something to free, in milliseconds; infinite for never. */
  dueOf(value: Value): number
}

/** Consecutive entries of a checkpoint, in the order of their keys. */
export interface TablePart {
  readonly entries: Buffer
  /** A lower bound of when one of them is due, in milliseconds; -Infinity as long as it is not known. */
  due: number
}

/** An entry as it is stored: a view. */
export interface StoredEntry {
  readonly key: string
  readonly entry: Buffer
}

/** What was changed since the last checkpoint. Null: deleted. */
type Changes<Value> = ReadonlyMap<string, Value | null>

/** A table as it was at one moment. */
export interface Snapshot<Value> {
  readonly changes: Changes<Value>
  /** The values that were changed, and the other entries, in the order of the keys. */
  items(): Iterable<Item<Value>>
}

type Item<Value> = StoredEntry | { readonly key: string; readonly value: Value }

/**
 * A map in the order of the UTF-8 bytes of its keys. What the last checkpoint holds stays encoded and is
 * decoded when it is used; what was changed since is in memory. Values are never modified, but replaced: so
 * a checkpoint is written while the table changes.
 */
export class Table<Value extends object> {
  readonly codec: EntryCodec<Value>
  #parts: readonly TablePart[] = []
  readonly #changed = new Map<string, Value | null>()
  /** The keys of what was changed. In order once something needs the order: an opening does not. */
  #order: OrderedList<string> | undefined
  readonly #decoded = new RecentMap<string, Value>(DECODED_MAX)

  constructor(codec: EntryCodec<Value>) {
    this.codec = codec
  }

  get changed(): Changes<Value> {
    return this.#changed
  }

  get parts(): readonly TablePart[] {
    return this.#parts
  }

  get(key: string): Value | undefined {
    const changed = this.#changed.get(key)
    return changed === undefined ? this.stored(key) : (changed ?? undefined)
  }

  /** Null deletes the entry. */
  set(key: string, value: Value | null): void {
    if (this.#order !== undefined && !this.#changed.has(key)) this.#order.add(key)
    this.#changed.set(key, value)
    this.#decoded.delete(key)
  }

  /** The value in the last checkpoint. */
  stored(key: string): Value | undefined {
    const decoded = this.#decoded.get(key)
    if (decoded !== undefined) return decoded
    const bytes = utf8(key)
    const entries = this.#parts[this.#partOf(bytes)]?.entries
    const start = entries && offsetOf(entries, bytes)
    if (entries === undefined || start === entries.length || compareKey(entries, start!, bytes) !== 0) {
      return undefined
    }
    const value = this.#decode(entryAt(entries, start!))
    this.#decoded.set(key, value)
    return value
  }

  list({ prefix, after, limit }: ListRange): [key: string, value: Value][] {
    const found: [string, Value][] = []
    if (limit <= 0) return found
    for (const item of this.#from(compareUtf8(after, prefix) > 0 ? after : prefix)) {
      if (!item.key.startsWith(prefix)) break
      if (item.key === after) continue
      found.push([item.key, this.valueOf(item)])
      if (found.length >= limit) break
    }
    return found
  }

  /** All values, decoded. */
  *values(): Generator<readonly [key: string, value: Value]> {
    for (const item of this.#from('')) yield [item.key, this.valueOf(item)]
  }

  valueOf(item: Item<Value>): Value {
    return 'value' in item ? item.value : this.#decode(item)
  }

  snapshot(): Snapshot<Value> {
    const keys = [...this.#orderedKeys().from(() => true)]
    const [changes, parts] = [new Map(this.#changed), this.#parts]
    return { changes, items: () => merged(storedIn(parts), keys, changes) }
  }

  /** Replaces what was stored by a checkpoint of a snapshot. */
  replaceStored(parts: readonly TablePart[], changes: Changes<Value>): void {
    this.#parts = parts
    for (const [key, value] of changes) if (this.#changed.get(key) === value) this.#changed.delete(key)
    this.#decoded.clear()
    this.#order = undefined
  }

  #decode({ key, entry }: StoredEntry): Value {
    const start = ENTRY_HEADER_BYTES + Buffer.byteLength(key)
    return this.codec.decode(JSON.parse(entry.toString('utf8', start)))
  }

  #orderedKeys(): OrderedList<string> {
    if (this.#order === undefined) {
      this.#order = new OrderedList<string>(compareUtf8)
      // Ascending keys are added at the end.
      for (const key of [...this.#changed.keys()].sort()) this.#order.add(key)
    }
    return this.#order
  }

  /** The entries whose key is at or after `lower`. */
  #from(lower: string): Iterable<Item<Value>> {
    const keys = this.#orderedKeys().from((key) => compareUtf8(key, lower) >= 0)
    const bytes = utf8(lower)
    const first = Math.max(this.#partOf(bytes), 0)
    return merged(storedIn(this.#parts.slice(first), bytes), keys, this.#changed)
  }

  /** The index of the part in which a key would be; -1 before the first one. */
  #partOf(key: Uint8Array): number {
    return lowerBound(this.#parts, ({ entries }) => compareKey(entries, 0, key) > 0) - 1
  }
}

/** Merges stored entries with ascending changed keys, which take their place. */
function* merged<Value>(
  stored: Iterable<StoredEntry>,
  keys: Iterable<string>,
  changes: Changes<Value>,
): Generator<Item<Value>> {
  const entries = stored[Symbol.iterator]()
  let entry = entries.next()
  for (const key of keys) {
    let order = -1
    while (!entry.done) {
      order = compareUtf8(entry.value.key, key)
      if (order >= 0) break
      yield entry.value
      entry = entries.next()
    }
    if (order === 0) entry = entries.next()
    const value = changes.get(key)
    if (value) yield { key, value }
  }
  for (; !entry.done; entry = entries.next()) yield entry.value
}

function* storedIn(parts: readonly TablePart[], lower?: Uint8Array): Generator<StoredEntry> {
  for (const { entries } of parts) {
    yield* entriesOf(entries, lower === undefined ? 0 : offsetOf(entries, lower))
  }
}

/** The entries from the one at `offset` on. */
export function* entriesOf(entries: Buffer, offset = 0): Generator<StoredEntry> {
  for (let start = offset; start < entries.length; ) {
    const found = entryAt(entries, start)
    yield found
    start += found.entry.length
  }
}

/** The entries that are due at or before `until`. Notes in the part when the first one is. */
export function* dueIn(part: TablePart, until: number): Generator<StoredEntry> {
  const { entries } = part
  let first = Number.POSITIVE_INFINITY
  for (let start = 0; start < entries.length; start += entries.readUInt32LE(start)) {
    const due = entries.readDoubleLE(start + 8)
    if (due <= until) yield entryAt(entries, start)
    first = Math.min(first, due)
  }
  part.due = first
}

/** An entry: its length, the length of its key (4 bytes each), when it is due (8 bytes), key, and JSON. */
export function encodeEntry<Value>(codec: EntryCodec<Value>, key: string, value: Value): StoredEntry {
  const json = JSON.stringify(codec.encode(value))
  const keyBytes = Buffer.byteLength(key)
  const entry = Buffer.allocUnsafe(ENTRY_HEADER_BYTES + keyBytes + Buffer.byteLength(json))
  entry.writeUInt32LE(entry.length)
  entry.writeUInt32LE(keyBytes, 4)
  entry.writeDoubleLE(codec.dueOf(value), 8)
  entry.write(key, ENTRY_HEADER_BYTES)
  entry.write(json, ENTRY_HEADER_BYTES + keyBytes)
  return { key, entry }
}

function entryAt(entries: Buffer, start: number): StoredEntry {
  const keyStart = start + ENTRY_HEADER_BYTES
  const key = entries.toString('utf8', keyStart, keyStart + entries.readUInt32LE(start + 4))
  const entry = entries.subarray(start, start + entries.readUInt32LE(start))
  return { key, entry }
}

function compareKey(entries: Buffer, start: number, key: Uint8Array): number {
  const keyStart = start + ENTRY_HEADER_BYTES
  const keyEnd = keyStart + entries.readUInt32LE(start + 4)
  return entries.compare(key, 0, key.length, keyStart, keyEnd)
}

/** The offset of the first entry whose key is at or after `key`. */
function offsetOf(entries: Buffer, key: Uint8Array): number {
  let start = 0
  while (start < entries.length && compareKey(entries, start, key) < 0) start += entries.readUInt32LE(start)
  return start
}
