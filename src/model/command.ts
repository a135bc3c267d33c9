import { EMPTY_BYTES, textOf, utf8 } from './bytes.ts'
import { assertValid, invalid } from './errors.ts'
import { INTEGER_MAX } from './limits.ts'
import { fencingTokenProblem } from './names.ts'
import type { Command, Header } from './record.ts'

const CLOSE: Command = { kind: 'close' }

/** Whether a record has the form of a command: exactly one header, with an empty name. */
export function isCommandShaped(headers: readonly Header[]): boolean {
  return headers.length === 1 && headers[0]![0].length === 0
}

/** The meaning of a stored record; undefined if it is no command. */
export function commandOf(headers: readonly Header[], body: Uint8Array): Command | undefined {
  if (!isCommandShaped(headers)) return undefined
  try {
    return parseCommand(headers[0]![1], body)
  } catch {
    // Another server may store commands that this version does not know.
    return undefined
  }
}

/** Parses a record that has the form of a command. Throws `invalid` if it is not one. */
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
    case 'close':
      if (payload.length !== 0) throw invalid('invalid `close` command: the body must be empty', 'body')
      return CLOSE
    default:
      throw invalid('unknown command', 'headers')
  }
}

/**
 * A record that sets the fencing token, or clears it if `token` is empty. Throws `invalid` for a token of
 * more than 36 bytes.
 *
 * ```ts
 * // In one batch: takes over, and trims what the last writer has finished.
 * await stream.append([fenceRecord('writer-2'), trimRecord(100)])
 * ```
 */
export function fenceRecord(token: string): { headers: Header[]; body: Uint8Array } {
  assertValid(fencingTokenProblem(token), 'fencingToken')
  return { headers: [[EMPTY_BYTES, utf8('fence')]], body: utf8(token) }
}

/**
 * A record that removes all records below `seqNum`. Integers beyond 2^53 - 1 saturate: they remove
 * everything. Throws `invalid` for a negative number or a fraction.
 */
export function trimRecord(seqNum: number): { headers: Header[]; body: Uint8Array } {
  // The payload is unsigned: -1 would wrap around to everything.
  if (!Number.isInteger(seqNum) || seqNum < 0) {
    throw invalid('`seqNum` of a trim must be an integer, 0 or more', 'seqNum')
  }
  const body = new Uint8Array(8)
  new DataView(body.buffer).setBigUint64(0, BigInt(Math.min(seqNum, INTEGER_MAX)))
  return { headers: [[EMPTY_BYTES, utf8('trim')]], body }
}

/** A record that closes the stream. No record may follow it, in its batch or later. */
export function closeRecord(): { headers: Header[] } {
  return { headers: [[EMPTY_BYTES, utf8('close')]] }
}
