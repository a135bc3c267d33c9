import { compareUtf8, utf8 } from '../../../src/model/bytes.ts'
import type { ListRange } from '../../../src/storage/contract.ts'
import { lowerBound, OrderedList, RecentMap } from '../../../src/storage/ordered-list.ts'
import { ByteReader, type ByteWriter } from './bytes.ts'

/** Entries that were decoded stay decoded as long as they are among so many. */
const DECODED_MAX = 4_096

/** How the values of a table are encoded. An entry is its length, its key, and then this. */
export interface EntryCodec<Value> {
  write(writer: ByteWriter, key: string, value: Value): void
  /** Throws `RangeError` if the entry is malformed. */
  read(reader: ByteReader, key: string): Value
}

/** Consecutive entries of a checkpoint, in the order of their keys. */
export interface TablePart {
  readonly entries: Buffer
  /** Of logs: a lower bound of when one of them has something to free, in milliseconds; null for never. */
  readonly due: number | null
}

/** The place of an entry in a part. */
interface EntryPlace {
  readonly start: number
  readonly keyStart: number
  readonly keyEnd: number
  readonly end: number
}

/** What a snapshot consists of, in the order of the keys: parts that did not change, and other entries. */
export type SnapshotItem<Value> =
  | { readonly part: TablePart }
  | { readonly entry: Buffer; readonly key: string }
  | { readonly key: string; readonly value: Value }

/**
 * A map in the order of the UTF-8 bytes of its keys. What the last checkpoint held stays encoded and is
 * decoded when it is used; what was changed since is in memory. While a checkpoint is written, the changes
 * that it holds are **frozen**: further changes are kept apart.
 */
export class Table<Value extends object> {
  readonly codec: EntryCodec<Value>
  #parts: readonly TablePart[] = []
  /** Null: deleted. */
  #changed = new Map<string, Value | null>()
  #frozen: ReadonlyMap<string, Value | null> | undefined
  #frozenKeys: readonly string[] = []
  /**
   * The keys that were changed, frozen or not. In order once something needs the order: an opening does not.
   */
  #keys: OrderedList<string> | undefined
  #decoded = new RecentMap<string, Value>(DECODED_MAX)

  constructor(codec: EntryCodec<Value>) {
    this.codec = codec
  }

  /** What was changed and is not frozen. */
  get changed(): ReadonlyMap<string, Value | null> {
    return this.#changed
  }

  get parts(): readonly TablePart[] {
    return this.#parts
  }

  /** The value must not be modified unless it is in `changed`. */
  get(key: string): Value | undefined {
    const changed = this.#overlay(key)
    return changed === undefined ? this.stored(key) : (changed ?? undefined)
  }

  /** Null deletes the entry. */
  set(key: string, value: Value | null): void {
    if (this.#keys !== undefined && this.#overlay(key) === undefined) this.#keys.add(key)
    this.#changed.set(key, value)
    this.#decoded.delete(key)
  }

  /** The value in the last checkpoint. */
  stored(key: string): Value | undefined {
    const decoded = this.#decoded.get(key)
    if (decoded !== undefined) return decoded
    const bytes = utf8(key)
    const part = this.#parts[this.#partOf(bytes)]
    const place = part && placeOf(part.entries, bytes)
    if (place === undefined) return undefined
    const value = this.codec.read(new ByteReader(part!.entries, place.keyEnd, place.end), key)
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

  valueOf(item: Exclude<SnapshotItem<Value>, { part: TablePart }>): Value {
    if ('value' in item) return item.value
    const { keyEnd } = placeAt(item.entry, 0)
    return this.codec.read(new ByteReader(item.entry, keyEnd), item.key)
  }

  /** All values, decoded. */
  *values(): Generator<readonly [key: string, value: Value]> {
    for (const item of this.#from('')) yield [item.key, this.valueOf(item)]
  }

  /** Keeps later changes apart, so that {@link snapshot} stays as it is. */
  freeze(): void {
    this.#frozen = this.#changed
    this.#frozenKeys = [...this.#orderedKeys().from(() => true)]
    this.#changed = new Map()
  }

  /** Ends the freeze of a checkpoint that was not written. */
  thaw(): void {
    this.#changed = new Map([...(this.#frozen ?? []), ...this.#changed])
    this.#frozen = undefined
  }

  /**
   * The entries when the table was frozen. Parts that no change falls into are returned as they are, unless
   * they are short or `isWhole` is false by then.
   */
  *snapshot(isWhole: () => boolean, partBytesMin: number): Generator<SnapshotItem<Value>> {
    const frozen = this.#frozen!
    const keys = this.#frozenKeys
    let next = 0
    for (const [index, part] of this.#parts.entries()) {
      const following = this.#parts[index + 1]
      const end = following && firstKeyOf(following)
      const first = next
      next = end === undefined ? keys.length : lowerBound(keys, (key) => compareUtf8(key, end) >= 0)
      if (next === first && part.entries.length >= partBytesMin && isWhole()) yield { part }
      else yield* merged(entriesOf(part.entries, 0), keys.slice(first, next), (key) => frozen.get(key))
    }
    yield* merged([], keys.slice(next), (key) => frozen.get(key))
  }

  /** Replaces what was stored, and forgets the changes that were frozen. */
  replaceStored(parts: readonly TablePart[]): void {
    this.#parts = parts
    this.#frozen = undefined
    this.#frozenKeys = []
    this.#decoded.clear()
    this.#keys = undefined
  }

  #orderedKeys(): OrderedList<string> {
    if (this.#keys === undefined) {
      this.#keys = new OrderedList<string>(compareUtf8)
      const keys = new Set([...(this.#frozen?.keys() ?? []), ...this.#changed.keys()])
      // Ascending keys are added at the end.
      for (const key of [...keys].sort()) this.#keys.add(key)
    }
    return this.#keys
  }

  #overlay(key: string): Value | null | undefined {
    const changed = this.#changed.get(key)
    return changed === undefined ? this.#frozen?.get(key) : changed
  }

  /** The entries whose key is at or after `lower`. */
  #from(lower: string) {
    const changed = this.#orderedKeys().from((key) => compareUtf8(key, lower) >= 0)
    return merged(this.#storedFrom(utf8(lower)), changed, (key) => this.#overlay(key))
  }

  *#storedFrom(lower: Uint8Array): Generator<StoredEntry> {
    const first = Math.max(this.#partOf(lower), 0)
    for (let index = first; index < this.#parts.length; index++) {
      const { entries } = this.#parts[index]!
      yield* entriesOf(entries, index === first ? offsetOf(entries, lower) : 0)
    }
  }

  /** The index of the part in which a key would be; -1 before the first one. */
  #partOf(key: Uint8Array): number {
    return lowerBound(this.#parts, ({ entries }) => compareKey(entries, placeAt(entries, 0), key) > 0) - 1
  }
}

interface StoredEntry {
  readonly key: string
  readonly entry: Buffer
}

/** Merges stored entries with ascending changed keys, which take their place. */
function* merged<Value extends object>(
  stored: Iterable<StoredEntry>,
  keys: Iterable<string>,
  changedValue: (key: string) => Value | null | undefined,
): Generator<Exclude<SnapshotItem<Value>, { part: TablePart }>> {
  const [entries, changes] = [stored[Symbol.iterator](), keys[Symbol.iterator]()]
  let [entry, change] = [entries.next(), changes.next()]
  while (!entry.done || !change.done) {
    const order = entry.done ? 1 : change.done ? -1 : compareUtf8(entry.value.key, change.value)
    if (order < 0) {
      yield entry.value as StoredEntry
      entry = entries.next()
      continue
    }
    if (order === 0) entry = entries.next()
    const key = change.value as string
    const value = changedValue(key)
    if (value) yield { key, value }
    change = changes.next()
  }
}

/** Writes an entry. */
export function writeEntry<Value>(
  writer: ByteWriter,
  scratch: ByteWriter,
  codec: EntryCodec<Value>,
  key: string,
  value: Value,
): void {
  scratch.truncate(0)
  scratch.string(key)
  codec.write(scratch, key, value)
  writer.varint(scratch.length)
  writer.raw(scratch.bytes)
}

/** The entries from the one at `offset` on. Views. */
export function* entriesOf(entries: Buffer, offset: number): Generator<StoredEntry> {
  for (let start = offset; start < entries.length; ) {
    const { keyStart, keyEnd, end } = placeAt(entries, start)
    yield { key: entries.toString('utf8', keyStart, keyEnd), entry: entries.subarray(start, end) }
    start = end
  }
}

/** Throws `RangeError` unless the entries are whole and in order. Returns their number. */
export function checkEntries(entries: Buffer): number {
  let count = 0
  let before: string | undefined
  for (const { key } of entriesOf(entries, 0)) {
    if (before !== undefined && compareUtf8(before, key) >= 0) throw new RangeError('keys are out of order')
    before = key
    count++
  }
  return count
}

function firstKeyOf({ entries }: TablePart): string {
  const { keyStart, keyEnd } = placeAt(entries, 0)
  return entries.toString('utf8', keyStart, keyEnd)
}

function placeAt(entries: Buffer, start: number): EntryPlace {
  const reader = new ByteReader(entries, start)
  const end = reader.varint() + reader.offset
  const keyBytes = reader.varint()
  const keyStart = reader.offset
  const keyEnd = keyStart + keyBytes
  if (keyEnd > end || end > entries.length) throw new RangeError('an entry is truncated')
  return { start, keyStart, keyEnd, end }
}

function compareKey(entries: Buffer, { keyStart, keyEnd }: EntryPlace, key: Uint8Array): number {
  return entries.compare(key, 0, key.length, keyStart, keyEnd)
}

function placeOf(entries: Buffer, key: Uint8Array): EntryPlace | undefined {
  const start = offsetOf(entries, key)
  if (start === entries.length) return undefined
  const place = placeAt(entries, start)
  return compareKey(entries, place, key) === 0 ? place : undefined
}

/** The offset of the first entry whose key is at or after `key`. */
function offsetOf(entries: Buffer, key: Uint8Array): number {
  let start = 0
  while (start < entries.length) {
    const place = placeAt(entries, start)
    if (compareKey(entries, place, key) >= 0) break
    start = place.end
  }
  return start
}
