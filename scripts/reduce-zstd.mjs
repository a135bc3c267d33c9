// Empties functions of the WebAssembly module of zstd that headwater never calls: the compressors of a block
// for levels that it does not use, and for dictionaries. They are half of the module.

const HEADER_BYTES = 8
const SECTION = { import: 2, element: 9, code: 10, data: 11 }
/** A body without locals, which traps: its size, no locals, `unreachable`, `end`. */
const TRAP = [3, 0, 0x00, 0x0b]

/** The strategies of zstd in the order of its table. The first is a second name of `fast`. */
const STRATEGIES = ['', 'fast', 'dfast', 'greedy', 'lazy', 'lazy2', 'btlazy2', 'btopt', 'btultra']
/** What may precede a block: nothing but its window, a window in two parts, a dictionary. */
const MODES = ['window', 'divided', 'dictionary']
/** Levels up to 4 use these, whatever the length of the input. */
const USED = new Set(['', 'fast', 'dfast', 'greedy'])

/** Returns the module with traps in place of the compressors that levels up to 4 never use. */
export function reduceZstd(wasm) {
  const sections = sectionsOf(wasm)
  const imported = importedFunctions(wasm, sections.get(SECTION.import))
  const bodies = bodiesOf(wasm, sections.get(SECTION.code))
  const elements = elementsOf(wasm, sections.get(SECTION.element))
  const compressors = compressorsOf(wasm, sections.get(SECTION.data), elements)
  const used = new Set()
  const unused = new Set()
  for (const [i, index] of compressors.entries()) {
    const isUsed =
      USED.has(STRATEGIES[i % STRATEGIES.length]) && MODES[Math.floor(i / STRATEGIES.length)] !== 'dictionary'
    const functions = isUsed ? used : unused
    functions.add(index - imported)
  }
  const code = sections.get(SECTION.code)
  const parts = bodies.map(({ start, end }, i) =>
    unused.has(i) && !used.has(i) ? Uint8Array.from(TRAP) : wasm.subarray(start, end),
  )
  const content = Buffer.concat([encodeNumber(bodies.length), ...parts])
  return Buffer.concat([
    wasm.subarray(0, code.header),
    Uint8Array.of(SECTION.code),
    encodeNumber(content.length),
    content,
    wasm.subarray(code.end),
  ])
}

/** Reads numbers of the binary format (unsigned LEB128) one after the other. */
class Reader {
  constructor(bytes, position) {
    this.bytes = bytes
    this.position = position
  }

  byte() {
    return this.bytes[this.position++]
  }

  number() {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte()
      value |= (byte & 127) << shift
      if (byte < 128) return value >>> 0
    }
  }

  skip(count) {
    this.position += count
  }
}

function encodeNumber(number) {
  const bytes = []
  let rest = number
  for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128)
  return Uint8Array.of(...bytes, rest)
}

function sectionsOf(wasm) {
  const reader = new Reader(wasm, HEADER_BYTES)
  const sections = new Map()
  while (reader.position < wasm.length) {
    const header = reader.position
    const id = reader.byte()
    const size = reader.number()
    sections.set(id, { header, start: reader.position, end: reader.position + size })
    reader.skip(size)
  }
  return sections
}

function importedFunctions(wasm, { start }) {
  const reader = new Reader(wasm, start)
  let functions = 0
  for (let count = reader.number(); count > 0; count--) {
    reader.skip(reader.number())
    reader.skip(reader.number())
    const kind = reader.byte()
    if (kind === 0) {
      reader.number()
      functions++
    } else if (kind === 3) {
      reader.skip(2)
    } else {
      if (kind === 1) reader.skip(1)
      const hasMaximum = reader.number() === 1
      reader.number()
      if (hasMaximum) reader.number()
    }
  }
  return functions
}

/** Where each body is, with its size in front. */
function bodiesOf(wasm, { start }) {
  const reader = new Reader(wasm, start)
  return Array.from({ length: reader.number() }, () => {
    const start = reader.position
    reader.skip(reader.number())
    return { start, end: reader.position }
  })
}

/** The functions that can be called by their number in the table. */
function elementsOf(wasm, { start }) {
  const reader = new Reader(wasm, start)
  const elements = []
  for (let count = reader.number(); count > 0; count--) {
    reader.skip(2)
    const offset = reader.number()
    reader.skip(1)
    const length = reader.number()
    for (let i = 0; i < length; i++) elements[offset + i] = reader.number()
  }
  return elements
}

/**
 * The compressors of each mode and strategy: a table in the data, whose rows begin with the same number
 * twice.
 */
function compressorsOf(wasm, { start }, elements) {
  const reader = new Reader(wasm, start)
  const tables = []
  for (let count = reader.number(); count > 0; count--) {
    reader.skip(2)
    reader.number()
    reader.skip(1)
    const length = reader.number()
    const data = Buffer.from(wasm.subarray(reader.position, reader.position + length))
    reader.skip(length)
    for (let offset = 0; offset + 4 * STRATEGIES.length * MODES.length <= length; offset += 4) {
      const table = Array.from({ length: STRATEGIES.length * MODES.length }, (_, i) =>
        data.readUInt32LE(offset + 4 * i),
      )
      if (isTableOfCompressors(table, elements)) tables.push(table.map((element) => elements[element]))
    }
  }
  if (tables.length !== 1) throw new Error(`zstd-codec has changed: ${tables.length} tables of compressors`)
  return tables[0]
}

function isTableOfCompressors(table, elements) {
  const distinct = new Set(table)
  return (
    distinct.size === table.length - MODES.length &&
    MODES.every((_, mode) => table[mode * STRATEGIES.length] === table[mode * STRATEGIES.length + 1]) &&
    table.every((element) => elements[element] !== undefined)
  )
}
