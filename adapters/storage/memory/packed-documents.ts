import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import type { DocumentStore, DocumentText } from './document-store.ts'
import { FieldReader, FieldWriter } from './packed-fields.ts'
import { PackedTable } from './packed-table.ts'
import { SlotOrder } from './slot-order.ts'
import { filledTemplate, templateOf, writeVariables } from './text-template.ts'

/** The most templates that others refer to. */
const BASES_MAX = 255
/** The number of them that a template is compared with. */
const COMPARED_MAX = 4

/**
 * The documents of a collection, without an object for each. Most texts have the template of another one of
 * the collection, or one that begins and ends as that does: only the difference and the variables are stored,
 * in a {@link PackedTable}.
 */
export class PackedDocuments implements DocumentStore {
  readonly #table: PackedTable
  readonly #order = new SlotOrder((a, b) => this.#compare(a, b))
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
    const slot = this.#slotOf(key)
    if (slot === 0) return undefined
    const fields = new FieldReader(this.#table.value(slot))
    const version = fields.number()
    const base = this.#bases[fields.number()]!
    const head = fields.number() - 1
    // Read in this order.
    const template =
      head < 0 ? base : base.slice(0, head) + fields.text() + base.slice(base.length - fields.number())
    return { text: filledTemplate(template, key, fields), version }
  }

  set(key: string, { text, version }: DocumentText): void {
    const template = templateOf(text, key)
    const base = this.#baseFor(template.text)
    const fields = this.#writer
    fields.number(version)
    fields.number(base)
    if (this.#bases[base] === template.text) fields.number(0)
    else {
      const { head, tail } = likeness(this.#bases[base]!, template.text)
      fields.number(head + 1)
      fields.text(template.text.slice(head, template.text.length - tail))
      fields.number(tail)
    }
    writeVariables(fields, template.variables)
    const { size } = this.#table
    const slot = this.#table.set(utf8(key), fields.take())
    if (this.#table.size > size) this.#order.add(slot)
  }

  delete(key: string): void {
    const slot = this.#slotOf(key)
    if (slot === 0) return
    this.#order.delete(slot)
    this.#table.delete(utf8(key))
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

  #slotOf(key: string): number {
    const wanted = utf8(key)
    const slot = this.#table.find(wanted)
    // Lone surrogates become U+FFFD in UTF-8, which the key of another document may contain.
    const isOther = wanted.length !== key.length && slot !== 0 && lossyTextOf(this.#table.key(slot)) !== key
    return isOther ? 0 : slot
  }

  /** The number of a base that the template is like; a new one, if it is not and there is room. */
  #baseFor(text: string): number {
    const found = this.#recent.find((base) => {
      if (this.#bases[base] === text) return true
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
