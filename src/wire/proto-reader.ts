import { textOf } from '../model/bytes.ts'
import { INTEGER_MAX } from '../model/limits.ts'

/** Bytes that are not the protobuf message they should be. */
export class MalformedProto extends Error {}

export const VARINT = 0
const FIXED_64 = 1
export const LENGTH_DELIMITED = 2
const START_GROUP = 3
const END_GROUP = 4
const FIXED_32 = 5

const GROUP_DEPTH_MAX = 100
const FIELD_NUMBER_MAX = 2 ** 29 - 1

/** Reads the fields of protobuf messages one by one. Every method throws {@link MalformedProto} on what cannot be. */
export class ProtoReader {
  readonly #bytes: Uint8Array
  #offset = 0

  constructor(bytes: Uint8Array) {
    // Views of a Node `Buffer` would be `Buffer`s, which `slice` differently.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  get offset(): number {
    return this.#offset
  }

  /** The next field's number and wire type, as `number * 8 + type`. */
  tag(): number {
    const tag = this.uint64()
    const type = tag % 8
    const fieldNumber = (tag - type) / 8
    if (fieldNumber < 1 || fieldNumber > FIELD_NUMBER_MAX || type > FIXED_32)
      throw new MalformedProto('invalid tag')
    return tag
  }

  /** An unsigned number: exact up to 2^53 - 1, `Infinity` from there to 2^64 - 1. */
  uint64(): number {
    const bytes = this.#bytes
    const first = bytes[this.#offset]
    if (first !== undefined && first < 0x80) {
      this.#offset++
      return first
    }
    let value = 0
    let scale = 1
    for (let i = 0; i < 10; i++) {
      const byte = bytes[this.#offset++]
      if (byte === undefined) throw new MalformedProto('cut short')
      if (i === 9 && byte > 1) break
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value > INTEGER_MAX ? Number.POSITIVE_INFINITY : value
      scale *= 128
    }
    throw new MalformedProto('a number is longer than 64 bits')
  }

  /** Reads a length and returns the offset at which what it measures ends, at most `limit`. */
  end(limit = this.#bytes.length): number {
    const length = this.uint64()
    const end = this.#offset + length
    if (end > limit) throw new MalformedProto('cut short')
    return end
  }

  /** A view of the message's own bytes. */
  bytes(): Uint8Array {
    const end = this.end()
    const bytes = this.#bytes.subarray(this.#offset, end)
    this.#offset = end
    return bytes
  }

  string(): string {
    const text = textOf(this.bytes())
    if (text === undefined) throw new MalformedProto('a string is not UTF-8')
    return text
  }

  /** Skips the value of a field that is not known. */
  skip(tag: number, depth = 0): void {
    const type = tag % 8
    if (type === VARINT) this.uint64()
    else if (type === FIXED_64) this.#offset += 8
    else if (type === FIXED_32) this.#offset += 4
    else if (type === LENGTH_DELIMITED) this.#offset = this.end()
    else if (type === START_GROUP) this.#skipGroup(tag, depth)
    else throw new MalformedProto('a group ends that did not begin')
    if (this.#offset > this.#bytes.length) throw new MalformedProto('cut short')
  }

  #skipGroup(start: number, depth: number): void {
    if (depth >= GROUP_DEPTH_MAX) throw new MalformedProto('too many nested groups')
    const groupEnd = start - START_GROUP + END_GROUP
    for (let tag = this.tag(); tag !== groupEnd; tag = this.tag()) this.skip(tag, depth + 1)
  }
}
