import { textOf, utf8 } from './bytes.ts'
import { invalid } from './errors.ts'
import { fencingTokenProblem } from './fencing-token.ts'
import { INTEGER_MAX } from './limits.ts'
import type { Header } from './record.ts'

/** What a command record asks for (service-interface.md "Command records"). */
export type Command =
  /** Sets the fencing token; an empty one clears it. */
  | { readonly kind: 'fence'; readonly token: string }
  /** Asks for the removal of records below `seqNum`; values beyond 2^53 - 1 saturate, meaning everything. */
  | { readonly kind: 'trim'; readonly seqNum: number }

/** True for a record that is a command or pretends to be one: exactly one header, and its name is empty. */
export function isCommandShaped(headers: readonly Header[]): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

/** Reads the command of a command-shaped record, or throws 422 `invalid` (wire-behaviour.md 3.5). */
export function parseCommand(operation: Uint8Array, payload: Uint8Array): Command {
  switch (textOf(operation)) {
    case 'fence': {
      const token = textOf(payload)
      if (token === undefined)
        throw invalid('invalid `fence` command: fencing token is not valid UTF-8', 'body')
      const problem = fencingTokenProblem(token)
      if (problem !== undefined) throw invalid(`invalid \`fence\` command: ${problem}`, 'body')
      return { kind: 'fence', token }
    }
    case 'trim': {
      if (payload.length !== 8) {
        throw invalid(
          `invalid \`trim\` command: earliest sequence number to trim to was ${payload.length} bytes, must be 8`,
          'body',
        )
      }
      const seqNum = new DataView(payload.buffer, payload.byteOffset, 8).getBigUint64(0)
      return { kind: 'trim', seqNum: seqNum > BigInt(INTEGER_MAX) ? INTEGER_MAX : Number(seqNum) }
    }
    default:
      throw invalid('unknown command', 'headers')
  }
}

const EMPTY = new Uint8Array(0)

/** The record that sets the fencing token (clears it when empty). */
export function fenceRecord(token: string): { headers: Header[]; body: Uint8Array } {
  return { headers: [[EMPTY, utf8('fence')]], body: utf8(token) }
}

/**
 * The record that asks for the removal of all records below `seqNum`, an integer; values beyond 2^53 - 1 saturate, meaning everything
 * (rulings.md "Numbers"). Throws 422 `invalid` for anything else.
 */
export function trimRecord(seqNum: number): { headers: Header[]; body: Uint8Array } {
  const saturated = Math.min(seqNum, INTEGER_MAX)
  // The payload is unsigned: -1 would wrap around to everything.
  if (!Number.isSafeInteger(saturated) || saturated < 0) {
    throw invalid('a trim point must be an integer, 0 or more', 'seq_num')
  }
  const body = new Uint8Array(8)
  new DataView(body.buffer).setBigUint64(0, BigInt(saturated))
  return { headers: [[EMPTY, utf8('trim')]], body }
}
