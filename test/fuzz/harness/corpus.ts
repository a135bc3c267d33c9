import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Input } from './target.ts'

/** An input that a decoder once failed on, or one that is worth keeping. */
export interface FoundCase {
  readonly why: string
  readonly input: Input
}

/** As it stands in a file: bytes in hexadecimal digits, text as it is. */
type WrittenCase = { readonly why: string } & ({ readonly hex: string } | { readonly text: string })

/** The cases of a decoder, from `NAME.json` of the directory. */
export function foundCases(directory: string, name: string): FoundCase[] {
  const path = join(directory, `${name}.json`)
  if (!existsSync(path)) return []
  const written: WrittenCase[] = JSON.parse(readFileSync(path, 'utf8'))
  return written.map((found) => ({ why: found.why, input: inputOf(found) }))
}

/** An input as it is written in a corpus. */
export function writtenInput(input: Input): string {
  return JSON.stringify(typeof input === 'string' ? { text: input } : { hex: toHex(input) })
}

function inputOf(found: WrittenCase): Input {
  return 'text' in found ? found.text : new Uint8Array(Buffer.from(found.hex, 'hex'))
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')
}
