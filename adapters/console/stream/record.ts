import { lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import type { Command, SequencedRecord } from '../../../src/model/record.ts'
import { type JsonNode, jsonTreeOf } from './json-text.ts'
import { hexTextOf, type ProtobufTypes, protobufTree } from './protobuf.ts'

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
