import { textOf } from '../../../src/model/bytes.ts'
import type { Command } from '../../../src/model/record.ts'
import { type JsonNode, jsonTreeOf } from './json-text.ts'

/** How bytes are shown. `auto` is a tree if they are JSON, else text, else hex. */
export type Format = 'auto' | 'text' | 'hex'

/** What a command does, in words. */
export function commandText(command: Command): string {
  if (command.kind === 'trim') return `removes the records before ${command.seqNum}`
  if (command.kind === 'close') return 'closes the stream'
  if (command.token === '') return 'clears the fencing token'
  return `sets the fencing token to ${JSON.stringify(command.token)}`
}

/** A row does not show more bytes than this. */
const PREVIEW_BYTES = 384

/** The beginning of a body on one line. */
export function previewOf(body: Uint8Array, format: Format): string {
  const bytes = body.subarray(0, PREVIEW_BYTES)
  if (format === 'hex') return hexTextOf(bytes)
  // The end may be in the middle of a character.
  const text = new TextDecoder().decode(bytes, { stream: bytes.length < body.length })
  return text.replace(/\s+/g, ' ')
}

/** Bytes as pairs of digits. */
export function hexTextOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(' ')
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
export function renderBody(bytes: Uint8Array, format: Format, isCut = false): RenderedBody {
  const text = isCut ? beginningOf(bytes) : textOf(bytes)
  if (format === 'hex' || text === undefined) {
    const note = format === 'hex' ? undefined : 'Not UTF-8, shown as hex'
    return { text: hexDump(bytes), isHex: true, note }
  }
  return { text, isHex: false, json: format === 'text' || isCut ? undefined : jsonTreeOf(text) }
}

/** The text of bytes that may end within a character; undefined if they are not UTF-8. */
function beginningOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}
