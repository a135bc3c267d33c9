import { concatBytes } from '../../src/model/bytes.ts'
import { LINE_BYTES_MAX } from './export-entry.ts'
import { TransferError } from './transfer-error.ts'

export interface Line {
  /** The first is 1. */
  readonly number: number
  /** Without its line break. */
  readonly bytes: Uint8Array
  /** How many bytes the input has up to the end of the line, the line break included. */
  readonly end: number
}

const NEWLINE = 0x0a

/**
 * The lines of an input, those of a chunk at a time. A last line without a line break was cut off and is left out.
 *
 * @throws TransferError for a line of more than 8 MiB.
 */
export async function* linesOf(input: AsyncIterable<Uint8Array>): AsyncGenerator<readonly Line[]> {
  let number = 0
  let end = 0
  let open: Uint8Array[] = []
  let openBytes = 0
  for await (const chunk of input) {
    const lines: Line[] = []
    let start = 0
    for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, start)) {
      open.push(chunk.subarray(start, at))
      openBytes += at - start
      number++
      check(openBytes, number)
      end += openBytes + 1
      lines.push({ number, bytes: concatBytes(open), end })
      open = []
      openBytes = 0
      start = at + 1
    }
    if (start < chunk.length) {
      open.push(chunk.subarray(start))
      openBytes += chunk.length - start
      check(openBytes, number + 1)
    }
    if (lines.length > 0) yield lines
  }
}

function check(bytes: number, number: number): void {
  if (bytes > LINE_BYTES_MAX) {
    throw new TransferError(`line ${number} is longer than ${LINE_BYTES_MAX} bytes`)
  }
}
