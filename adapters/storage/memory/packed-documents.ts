import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { OrderedList } from '../../../src/storage/ordered-list.ts'
import type { DocumentStore, DocumentText } from './document-store.ts'
import { FieldReader, FieldWriter } from './packed-fields.ts'
import { PackedTable } from './packed-table.ts'

/** The most texts that others refer to. */
const BASES_MAX = 255
/** The number of them that a text is compared with. */
const COMPARED_MAX = 4

/**
 * The documents of a collection, without an object for each. Most texts begin and end as another one of the
 * collection does: only what is between is stored, in a {@link PackedTable}.
 */
export class PackedDocuments implements DocumentStore {
  readonly #table: PackedTable
  readonly #order = new OrderedList<number>((a, b) => this.#compare(a, b))
  readonly #writer = new FieldWriter()
  /** The first one is like nothing. */
  readonly #bases = ['']
  /** The bases that were used last, the latest first. */
  #recent: number[] = []

  constructor(table = new PackedTable()) {
    this.#table = table
  }

  get size(): number {
    return this.#table.size
  }

  get(key: string): DocumentText | undefined {
    const slot = this.#table.find(key)
    return slot === 0 ? undefined : this.#document(slot)
  }

  set(key: string, { text, version }: DocumentText): void {
    const base = this.#baseFor(text)
    const { head, tail } = likeness(this.#bases[base]!, text)
    const fields = this.#writer
    fields.number(version)
    fields.number(base)
    fields.number(head)
    fields.number(tail)
    fields.text(text.slice(head, text.length - tail))
    const { size } = this.#table
    const slot = this.#table.set(key, fields.take()!)
    if (this.#table.size > size) this.#order.add(slot)
  }

  delete(key: string): void {
    const slot = this.#table.find(key)
    if (slot === 0) return
    this.#order.delete(slot)
    this.#table.delete(key)
  }

  *keysFrom(first: string): Generator<string, void, undefined> {
    const wanted = utf8(first)
    for (const slot of this.#order.from((slot) => compareBytes(this.#table.key(slot), wanted) >= 0)) {
      yield lossyTextOf(this.#table.key(slot))
    }
  }

  #compare(a: number, b: number): number {
    return compareBytes(this.#table.key(a), this.#table.key(b))
  }

  #fields(slot: number): FieldReader {
    return new FieldReader(this.#table.value(slot))
  }

  #document(slot: number): DocumentText {
    const fields = this.#fields(slot)
    const version = fields.number()
    const base = this.#bases[fields.number()]!
    const [head, tail] = [fields.number(), fields.number()]
    return { text: base.slice(0, head) + fields.text() + base.slice(base.length - tail), version }
  }

  /** The number of a base that the text is like; a new one, if it is not and there is room. */
  #baseFor(text: string): number {
    const found = this.#recent.find((base) => {
      const { head, tail } = likeness(this.#bases[base]!, text)
      return 2 * (head + tail) >= text.length
    })
    const isNew = found === undefined && this.#bases.length <= BASES_MAX
    if (isNew) this.#bases.push(text)
    const base = found ?? (isNew ? this.#bases.length - 1 : 0)
    if (base !== this.#recent[0]) {
      this.#recent = [base, ...this.#recent.filter((other) => other !== base)].slice(0, COMPARED_MAX)
    }
    return base
  }
}

/** Neither part ends within a surrogate pair, which UTF-8 cannot represent. */
function likeness(base: string, text: string): { readonly head: number; readonly tail: number } {
  const shorter = Math.min(base.length, text.length)
  let head = 0
  while (head < shorter && base.charCodeAt(head) === text.charCodeAt(head)) head++
  if (head > 0 && isHighSurrogate(text.charCodeAt(head - 1))) head--
  let tail = 0
  while (
    tail < shorter - head &&
    base.charCodeAt(base.length - 1 - tail) === text.charCodeAt(text.length - 1 - tail)
  ) {
    tail++
  }
  if (tail > 0 && isLowSurrogate(text.charCodeAt(text.length - tail))) tail--
  return { head, tail }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit < 0xe000
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length)
  for (let i = 0; i < shared; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}
