import { createFileRegistry, type FileRegistry, fromBinary, toJsonString } from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import type { Command, SequencedRecord } from '../../../src/model/record.ts'

/**
 * How bytes are shown. `auto` is protobuf if the record states it, a tree if they are JSON, else text, else
 * hex.
 */
export type Format = 'auto' | 'text' | 'hex' | 'protobuf'

/** How bodies are shown. */
export interface BodyFormat {
  readonly as: Format
  readonly types: ProtobufTypes | undefined
  /** The message type of records that state none; empty if it is not known. */
  readonly type: string
}

/** Returns the effect of a command in words. */
export function commandText(command: Command): string {
  if (command.kind === 'trim') return `removes the records before ${command.seqNum}`
  if (command.kind === 'close') return 'closes the stream'
  if (command.token === '') return 'clears the fencing token'
  return `sets the fencing token to ${JSON.stringify(command.token)}`
}

/** Parameters that name the type of a message: there is no standard. */
const PROTOBUF =
  /^application\/(?:[\w.]+[.-])?protobuf\b(?:.*;\s*(?:messageType|message|type|proto)="?([\w.]+))?/i

/** How a record is shown, and as which type of message. */
export function formatOf({ headers }: SequencedRecord, { as, types, type }: BodyFormat): BodyFormat {
  if (as === 'text' || as === 'hex') return { as, types, type }
  const [, value] = headers.find(([name]) => /^content-type$/i.test(lossyTextOf(name))) ?? []
  const stated = value && PROTOBUF.exec(lossyTextOf(value))
  // A type that is not loaded gives way to the one that was chosen.
  const known = [stated?.[1], type].find((one) => types?.names.includes(one ?? '')) ?? stated?.[1] ?? ''
  return { as: stated ? 'protobuf' : as, types, type: known }
}

/** A row does not show more bytes than this. */
const PREVIEW_BYTES = 384
/** Longer messages are not decoded for a row. */
const PREVIEW_MESSAGE_BYTES_MAX = 16_384

/** The beginning of a body on one line. */
export function previewOf(record: SequencedRecord, format: BodyFormat): string {
  const { body } = record
  const { as, types, type } = formatOf(record, format)
  const bytes = body.subarray(0, PREVIEW_BYTES)
  if (as === 'protobuf' && body.length <= PREVIEW_MESSAGE_BYTES_MAX) {
    const tree = protobufTree(body, types, type)
    if (tree !== undefined) return tree.text.slice(0, PREVIEW_BYTES)
  }
  // The end may be in the middle of a character.
  const text = as === 'hex' ? undefined : as === 'text' ? lossyTextOf(bytes) : beginningOf(bytes)
  return text?.replace(/\s+/g, ' ') ?? hexTextOf(bytes)
}

/** Bytes as lines of offset, digits and ASCII. */
function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let offset = 0; offset < bytes.length; offset += 16) {
    const row = bytes.subarray(offset, offset + 16)
    const ascii = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
    lines.push(`${offset.toString(16).padStart(6, '0')}  ${hexTextOf(row).padEnd(47)}  ${ascii.join('')}`)
  }
  return lines.join('\n')
}

/** A body as text or a tree to show. */
export interface RenderedBody {
  readonly text: string
  readonly isHex: boolean
  readonly json?: JsonNode | undefined
  /** A note if the body does not have the format that was asked for. */
  readonly note?: string | undefined
}

/** A body, or the beginning of one, in a format. */
export function renderBody(bytes: Uint8Array, format: BodyFormat, isCut = false): RenderedBody {
  const { as, types, type } = format
  const json = as === 'protobuf' && !isCut ? protobufTree(bytes, types, type) : undefined
  if (json !== undefined) return { text: json.text, isHex: false, json }
  const text = isCut ? beginningOf(bytes) : textOf(bytes)
  if (as === 'hex' || as === 'protobuf' || text === undefined) {
    const problem =
      as === 'protobuf' ? (isCut ? 'Too long to decode it at once' : 'Not decoded') : 'Not UTF-8'
    return { text: hexDump(bytes), isHex: true, note: as === 'hex' ? undefined : `${problem}, shown as hex` }
  }
  return { text, isHex: false, json: as === 'text' || isCut ? undefined : jsonTreeOf(text) }
}

/** The text of bytes that may end within a character; undefined if they are not UTF-8. */
function beginningOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:,]|[^\s"[\]{}:,]+/g

/** Deeper JSON is shown as text: nothing that is nested like this can be read as a tree. */
const DEPTH_MAX = 100

/** A JSON value that keeps its text: numbers that JavaScript cannot represent keep their digits. */
export interface JsonNode {
  /** Compact JSON. */
  readonly text: string
  /** The members of an object with their names, or the elements of an array; undefined for anything else. */
  readonly items?: readonly (readonly [name: string | undefined, value: JsonNode])[] | undefined
}

/** Parses JSON; undefined if the text is not JSON, or nested too deeply. */
export function jsonTreeOf(text: string): JsonNode | undefined {
  if (!/^\s*["[{\dtfn-]/.test(text)) return undefined
  try {
    JSON.parse(text)
    return nodeOf(text.matchAll(TOKEN), 0)
  } catch {
    return undefined
  }
}

/** Builds the next value of valid JSON; undefined at the end of an array or object. */
function nodeOf(tokens: RegExpStringIterator<RegExpExecArray>, depth: number): JsonNode | undefined {
  const [token] = tokens.next().value!
  if (token === ']' || token === '}') return undefined
  if (token !== '[' && token !== '{') return { text: token }
  if (depth === DEPTH_MAX) throw new RangeError('JSON is nested too deeply')
  const items: [string | undefined, JsonNode][] = []
  const texts: string[] = []
  for (let next = nodeOf(tokens, depth + 1); next !== undefined; next = nodeOf(tokens, depth + 1)) {
    if (token === '[') {
      items.push([undefined, next])
      texts.push(next.text)
    } else {
      tokens.next()
      const value = nodeOf(tokens, depth + 1)!
      items.push([JSON.parse(next.text), value])
      texts.push(`${next.text}:${value.text}`)
    }
    if (tokens.next().value![0] !== ',') break
  }
  return { text: `${token}${texts.join(',')}${token === '[' ? ']' : '}'}`, items }
}

/** The types of messages that were loaded. */
export interface ProtobufTypes {
  /** The full names of the messages, such as `shop.Order`. */
  readonly names: readonly string[]
  readonly registry: FileRegistry
}

/**
 * Reads the types of a file descriptor set, as `protoc --descriptor_set_out` and `buf build` write it.
 * Throws.
 */
export function protobufTypesOf(set: Uint8Array): ProtobufTypes {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, set))
  const names = [...registry].flatMap((type) => (type.kind === 'message' ? [type.typeName] : []))
  if (names.length === 0) throw new RangeError('no types')
  return { names, registry }
}

/** A message as JSON; undefined if its type is not known, or the bytes are no such message. */
export function protobufTree(
  bytes: Uint8Array,
  types: ProtobufTypes | undefined,
  type: string,
): JsonNode | undefined {
  const schema = types?.registry.getMessage(type)
  if (schema === undefined) return undefined
  try {
    return jsonTreeOf(toJsonString(schema, fromBinary(schema, bytes), { registry: types!.registry }))
  } catch {
    return undefined
  }
}

/** Bytes as pairs of digits. */
export function hexTextOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
}
