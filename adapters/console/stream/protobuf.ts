import { lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import type { JsonNode } from './json-text.ts'

/**
 * The fields of messages and the values of enumerations by their numbers, by full name: `.shop.Order`. A
 * value of an enumeration has a name only.
 */
export type ProtobufTypes = ReadonlyMap<string, ReadonlyMap<number, ProtobufField>>

interface ProtobufField {
  readonly name: string
  /** The type of a field descriptor, from 1 to 18. */
  readonly type: number
  /** The full name of a message or an enumeration. */
  readonly typeName: string
}

/** Deeper messages are shown as bytes. */
const DEPTH_MAX = 50
const MESSAGE = 11
const ENUM = 14
/** The wire type of each type of a field descriptor: a digit at its number. */
const WIRE_TYPES = '-150001502-22005100'
const CONTROL = /\p{Cc}/u

type WireValue = bigint | Uint8Array

/** Reads the wire format. Throws for bytes that are something else. */
class WireReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /** A number, in two's complement if it is of fixed length, or bytes. */
  value(wireType: number): WireValue {
    if (wireType === 0) return this.#varint()
    const length = wireType === 1 ? 8 : wireType === 5 ? 4 : wireType === 2 ? Number(this.#varint()) : -1
    const bytes = this.#bytes.subarray(this.#at, this.#at + length)
    if (length < 0 || bytes.length < length) throw new RangeError('not protobuf')
    this.#at += length
    return wireType === 2 ? bytes : bytes.reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n)
  }

  /** The next field: its number, wire type and value. */
  field(): readonly [number: number, wireType: number, value: WireValue] {
    const tag = Number(this.#varint())
    const number = Math.floor(tag / 8)
    if (number < 1 || number >= 2 ** 29) throw new RangeError('not protobuf')
    return [number, tag % 8, this.value(tag % 8)]
  }

  #varint(): bigint {
    for (let value = 0n, shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined) break
      value |= BigInt(byte & 127) << shift
      if (byte < 128) return value
    }
    throw new RangeError('not protobuf')
  }
}

/**
 * Decodes a message of a type, and the fields that it does not name, or all of them, by their numbers. `?`
 * follows the number of a field whose value can be something else. Undefined if the bytes are no message.
 */
export function protobufTree(
  bytes: Uint8Array,
  types: ProtobufTypes,
  type: string | undefined,
  depth = 0,
): JsonNode | undefined {
  if (depth > DEPTH_MAX) return undefined
  const fields = types.get(`.${type}`)
  const items: [name: string, value: JsonNode][] = []
  const within = (value: Uint8Array, name?: string) => protobufTree(value, types, name, depth + 1)
  try {
    for (const reader = new WireReader(bytes); !reader.isAtEnd; ) {
      const [number, wireType, value] = reader.field()
      const field = fields?.get(number)
      const known = field && typedNode(field, wireType, value, types, within)
      items.push(known ? [field.name, known] : [`${number}?`, guessedNode(wireType, value, within)])
    }
  } catch {
    return undefined
  }
  const texts = items.map(([name, { text }]) => `${JSON.stringify(name)}:${text}`)
  return { text: `{${texts.join()}}`, items }
}

type Within = (value: Uint8Array, name?: string) => JsonNode | undefined

/** The value of a known field; undefined if it does not have the type. */
function typedNode(
  { type, typeName }: ProtobufField,
  wireType: number,
  value: WireValue,
  types: ProtobufTypes,
  within: Within,
): JsonNode | undefined {
  const expected = Number(WIRE_TYPES[type])
  if (typeof value !== 'bigint') {
    if (type === MESSAGE) return within(value, typeName.slice(1))
    if (expected === 2) return { text: type === 9 ? JSON.stringify(lossyTextOf(value)) : bytesText(value) }
    const items: [undefined, JsonNode][] = []
    try {
      for (const packed = new WireReader(value); !packed.isAtEnd; )
        items.push([undefined, numberNode(type, packed.value(expected) as bigint, typeName, types)])
    } catch {
      return undefined
    }
    return { text: `[${items.map(([, { text }]) => text).join()}]`, items }
  }
  return wireType === expected ? numberNode(type, value, typeName, types) : undefined
}

function numberNode(type: number, value: bigint, typeName: string, types: ProtobufTypes): JsonNode {
  if (type === ENUM) {
    const name = types.get(typeName)?.get(Number(value))?.name
    if (name !== undefined) return { text: JSON.stringify(name) }
  }
  if (type === 1 || type === 2) return { text: String(floatOf(value, type === 1)) }
  if (type === 8) return { text: String(value !== 0n) }
  if (type === 17 || type === 18) return { text: String((value >> 1n) ^ -(value & 1n)) }
  if (type === 15) return { text: String(BigInt.asIntN(32, value)) }
  // int64, int32, an enumeration, sfixed64
  const isSigned = [3, 5, ENUM, 16].includes(type)
  return { text: String(isSigned ? BigInt.asIntN(64, value) : value) }
}

function floatOf(value: bigint, isDouble: boolean): number {
  return isDouble
    ? new Float64Array(BigUint64Array.of(value).buffer)[0]!
    : new Float32Array(Uint32Array.of(Number(value)).buffer)[0]!
}

/** The value of a field whose type is not known. */
function guessedNode(wireType: number, value: WireValue, within: Within): JsonNode {
  if (typeof value === 'bigint') {
    if (wireType === 0) return { text: String(BigInt.asIntN(64, value)) }
    return { text: `${value} or ${floatOf(value, wireType === 1)}` }
  }
  const text = textOf(value)
  const shown = { text: JSON.stringify(text) }
  if (text !== undefined && !CONTROL.test(text)) return shown
  return within(value) ?? (text === undefined ? { text: bytesText(value) } : shown)
}

function bytesText(bytes: Uint8Array): string {
  return `0x${hexTextOf(bytes, '')}`
}

/** Bytes as pairs of digits. */
export function hexTextOf(bytes: Uint8Array, separator = ' '): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(separator)
}

/** Reads the types of a file descriptor set, as `protoc --descriptor_set_out` and `buf build` write it. */
export function protobufTypesOf(set: Uint8Array): ProtobufTypes {
  const types = new Map<string, Map<number, ProtobufField>>()
  // The numbers of fields are those of google/protobuf/descriptor.proto.
  const addType = (type: Parts, prefix: string, members: Parts[], numberOf: number) => {
    const name = `${prefix}.${type.text(1)}`
    const fields = members.map((one) => {
      return [
        one.number(numberOf),
        { name: one.text(1), type: one.number(5), typeName: one.text(6) },
      ] as const
    })
    types.set(name, new Map(fields))
    return name
  }
  const addTypes = (scope: Parts, prefix: string, messages: number, enums: number) => {
    for (const type of scope.parts(enums)) addType(type, prefix, type.parts(2), 2)
    for (const type of scope.parts(messages)) addTypes(type, addType(type, prefix, type.parts(2), 3), 3, 4)
  }
  for (const file of new Parts(set).parts(1)) {
    const scope = file.text(2)
    addTypes(file, scope && `.${scope}`, 4, 5)
  }
  if (types.size === 0) throw new RangeError('no types')
  return types
}

/** A message of descriptors, by the numbers of its fields. */
class Parts {
  readonly #fields: (readonly [number: number, value: WireValue])[] = []

  constructor(bytes: Uint8Array) {
    for (const reader = new WireReader(bytes); !reader.isAtEnd; ) {
      const [number, , value] = reader.field()
      this.#fields.push([number, value])
    }
  }

  parts(number: number): Parts[] {
    return this.#values(number).map((value) => new Parts(value as Uint8Array))
  }

  text(number: number): string {
    return lossyTextOf((this.#values(number)[0] ?? new Uint8Array()) as Uint8Array)
  }

  number(number: number): number {
    return Number(this.#values(number)[0] ?? 0)
  }

  #values(wanted: number): WireValue[] {
    return this.#fields.filter(([number]) => number === wanted).map(([, value]) => value)
  }
}
