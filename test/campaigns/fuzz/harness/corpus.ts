import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Input } from './target.ts'

/** An input on which a decoder once failed, or one worth keeping. */
export interface FoundCase {
  readonly reason: string
  readonly input: Input
}

/** As stored in a file: bytes as hexadecimal digits, text unchanged. */
type WrittenCase = { readonly why: string } & ({ readonly hex: string } | { readonly text: string })

/** Reads the cases of a decoder from `NAME.json` in the directory. */
export function foundCases(directory: string, name: string): FoundCase[] {
  const path = join(directory, `${name}.json`)
  if (!existsSync(path)) return []
  const written: WrittenCase[] = JSON.parse(readFileSync(path, 'utf8'))
  return written.map((found) => ({ reason: found.why, input: inputOf(found) }))
}

/** Encodes an input for a corpus. */
export function writtenInput(input: Input): string {
  return JSON.stringify(typeof input === 'string' ? { text: input } : { hex: toHex(input) })
}

function inputOf(found: WrittenCase): Input {
  return 'text' in found ? found.text : new Uint8Array(Buffer.from(found.hex, 'hex'))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}
