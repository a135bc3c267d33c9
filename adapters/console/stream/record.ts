import { textOf, utf8 } from '../../../src/model/bytes.ts'
import { parseCommand } from '../../../src/model/command.ts'
import type { Command } from '../../../src/model/record.ts'
import { decodeBase64 } from '../../../src/wire/base64.ts'
import type { WireRecord } from '../api/types.ts'
import { indentJson } from './json-text.ts'

/** How bytes are shown. */
export type Format = 'text' | 'json' | 'hex'

/** The bytes of base64; empty if it is malformed. */
export function bytesOf(base64: string | undefined): Uint8Array {
  return decodeBase64(base64 ?? '') ?? new Uint8Array()
}

const lenient = new TextDecoder()

/** The text of base64. Bytes that are not UTF-8 become U+FFFD. */
export function decodeText(base64: string | undefined): string {
  return lenient.decode(bytesOf(base64))
}

/** The length of the bytes that base64 encodes. */
export function decodedLength(base64: string | undefined): number {
  if (base64 === undefined) return 0
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}

/** The metered size of a record (docs/protocol.md "Metered size"). */
export function meteredSize({ headers = [], body }: WireRecord): number {
  let bytes = 8 + decodedLength(body)
  for (const [name, value] of headers) bytes += 2 + decodedLength(name) + decodedLength(value)
  return bytes
}

/** The command of a command record; undefined for other records. */
export function commandOf({ headers = [], body }: WireRecord): Command | undefined {
  const [header] = headers
  if (headers.length !== 1 || header === undefined || header[0] !== '') return undefined
  try {
    return parseCommand(bytesOf(header[1]), bytesOf(body))
  } catch {
    return undefined
  }
}

/** What a command does, in words. */
export function commandText(command: Command): string {
  if (command.kind === 'trim') return `removes the records before ${command.seqNum}`
  if (command.token === '') return 'clears the fencing token'
  return `sets the fencing token to ${JSON.stringify(command.token)}`
}

/** Base64 of this length holds the bytes that a row can show. */
const PREVIEW_BASE64 = 512

/** The beginning of a body on one line. */
export function previewOf(body: string | undefined, format: Format): string {
  const bytes = bytesOf(body?.slice(0, PREVIEW_BASE64))
  if (format === 'hex') return hexOf(bytes)
  // The end may be in the middle of a character.
  const isCut = (body?.length ?? 0) > PREVIEW_BASE64
  const text = new TextDecoder().decode(bytes, { stream: isCut })
  return text.replace(/\s+/g, ' ')
}

/** Bytes as pairs of digits. */
export function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
}

/** Bytes as lines of offset, digits and ASCII. */
function hexDump(bytes: Uint8Array): string {
  const lines: string[] = []
  for (let offset = 0; offset < bytes.length; offset += 16) {
    const row = bytes.subarray(offset, offset + 16)
    const ascii = Array.from(row, (byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.'))
    lines.push(`${offset.toString(16).padStart(6, '0')}  ${hexOf(row).padEnd(47)}  ${ascii.join('')}`)
  }
  return lines.join('\n')
}

/** A body as text to show. */
export interface RenderedBody {
  readonly text: string
  readonly isHex: boolean
  /** If the body does not have the format that was asked for. */
  readonly note?: string
}

/** A body, or the beginning of one, in a format. */
export function renderBody(body: string | undefined, format: Format, isCut = false): RenderedBody {
  const bytes = bytesOf(body)
  if (format === 'hex') return { text: hexDump(bytes), isHex: true }
  const text = isCut ? beginningOf(bytes) : textOf(bytes)
  if (text === undefined) return { text: hexDump(bytes), isHex: true, note: 'Not UTF-8, shown as hex' }
  if (format === 'text' || isCut) return { text, isHex: false }
  try {
    return { text: indentJson(text), isHex: false }
  } catch {
    return { text, isHex: false, note: 'Not JSON, shown as text' }
  }
}

/** The text of bytes that may end within a character; undefined if they are not UTF-8. */
function beginningOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}

/** Whether a record contains a text in its body or headers, in any case. `needle` is in lower case. */
export function matches({ headers = [], body }: WireRecord, needle: string): boolean {
  if (needle === '') return true
  if (decodeText(body).toLowerCase().includes(needle)) return true
  return headers.some((header) => header.some((part) => decodeText(part).toLowerCase().includes(needle)))
}

/** The length of a text in UTF-8. */
export function utf8Bytes(text: string): number {
  return utf8(text).length
}
