import { describe, expect, it } from 'vitest'
import { EMPTY_BYTES, utf8 } from '../../src/model/bytes.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'
import {
  type Command,
  fenceRecord,
  type Header,
  isCommandShaped,
  parseCommand,
  trimRecord,
} from '../../src/model/record.ts'
import { titled } from '../support/titled.ts'
import { invalidMessage } from './rejection.ts'

const NAMED: Header = [utf8('name'), utf8('fence')]
const NAMELESS: Header = [EMPTY_BYTES, utf8('fence')]

function uint64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8)
  new DataView(bytes.buffer).setBigUint64(0, value)
  return bytes
}

describe('the shape of a command', () => {
  it.each<[string, Header[], boolean]>([
    ['no header', [], false],
    ['one header with a name', [NAMED], false],
    ['one header without a name', [NAMELESS], true],
    ['one header with neither name nor value', [[EMPTY_BYTES, EMPTY_BYTES]], true],
    ['a second header', [NAMELESS, NAMED], false],
    ['two headers without a name', [NAMELESS, NAMELESS], false],
  ])('%s: %s', (_, headers, expected) => {
    expect(isCommandShaped(headers)).toBe(expected)
  })
})

describe('commands', () => {
  it.each(
    titled<[string, Uint8Array, Command]>([
      ['fence', EMPTY_BYTES, { kind: 'fence', token: '' }],
      ['fence', utf8('token'), { kind: 'fence', token: 'token' }],
      ['fence', utf8('é'.repeat(18)), { kind: 'fence', token: 'é'.repeat(18) }],
      ['fence', utf8('\ufeffa'), { kind: 'fence', token: '\ufeffa' }],
      ['trim', uint64(0n), { kind: 'trim', seqNum: 0 }],
      ['trim', uint64(258n), { kind: 'trim', seqNum: 258 }],
      ['trim', uint64(2n ** 53n - 1n), { kind: 'trim', seqNum: INTEGER_MAX }],
      ['trim', uint64(2n ** 53n), { kind: 'trim', seqNum: INTEGER_MAX }],
      ['trim', uint64(2n ** 64n - 1n), { kind: 'trim', seqNum: INTEGER_MAX }],
    ]),
  )('%s', (_, operation, payload, command) => {
    expect(parseCommand(utf8(operation), payload)).toEqual(command)
  })

  it('reads a trim point from the middle of a larger buffer', () => {
    const buffer = new Uint8Array(24).fill(0xff)
    buffer.set(uint64(77n), 9)
    expect(parseCommand(utf8('trim'), buffer.subarray(9, 17))).toEqual({ kind: 'trim', seqNum: 77 })
  })

  it.each(
    titled<[string, Uint8Array, string]>([
      ['', EMPTY_BYTES, 'unknown command'],
      ['Fence', EMPTY_BYTES, 'unknown command'],
      ['TRIM', uint64(1n), 'unknown command'],
      ['fence ', EMPTY_BYTES, 'unknown command'],
      ['\ufefffence', EMPTY_BYTES, 'unknown command'],
      [
        'fence',
        utf8('a'.repeat(37)),
        'invalid `fence` command: fencing token must not exceed 36 bytes in length',
      ],
      ['fence', Uint8Array.of(0xff), 'invalid `fence` command: fencing token is not valid UTF-8'],
      [
        'trim',
        EMPTY_BYTES,
        'invalid `trim` command: earliest sequence number to trim to was 0 bytes, must be 8',
      ],
      [
        'trim',
        new Uint8Array(7),
        'invalid `trim` command: earliest sequence number to trim to was 7 bytes, must be 8',
      ],
      [
        'trim',
        new Uint8Array(9),
        'invalid `trim` command: earliest sequence number to trim to was 9 bytes, must be 8',
      ],
    ]),
  )('rejects %s', (_, operation, payload, message) => {
    expect(invalidMessage(() => parseCommand(utf8(operation), payload))).toBe(message)
  })

  it('rejects an operation that is not UTF-8', () => {
    expect(invalidMessage(() => parseCommand(Uint8Array.of(0xff), EMPTY_BYTES))).toBe('unknown command')
  })
})

describe('command records', () => {
  const parsed = ({ headers, body }: { headers: Header[]; body: Uint8Array }) => {
    expect(isCommandShaped(headers)).toBe(true)
    return parseCommand(headers[0]![1], body)
  }

  it.each(['', 'token', 'é'.repeat(18)])('fence %j', (token) => {
    expect(parsed(fenceRecord(token))).toEqual({ kind: 'fence', token })
  })

  it.each([
    [0, 0],
    [1, 1],
    [2 ** 32, 2 ** 32],
    [INTEGER_MAX, INTEGER_MAX],
    // Larger trim points select everything (docs/protocol.md "Numbers").
    [2 ** 53, INTEGER_MAX],
    [2 ** 64, INTEGER_MAX],
    [2 ** 64, INTEGER_MAX],
  ])('trim to %d', (seqNum, expected) => {
    expect(parsed(trimRecord(seqNum))).toEqual({ kind: 'trim', seqNum: expected })
  })

  it('writes the trim point as a big-endian unsigned 64-bit number', () => {
    expect([...trimRecord(0x0102_0304).body]).toEqual([0, 0, 0, 0, 1, 2, 3, 4])
  })

  it.each([-1, 0.5, Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, '5' as never])(
    'rejects a trim to %d',
    (seqNum) => {
      expect(invalidMessage(() => trimRecord(seqNum))).toBe(
        '`seqNum` of a trim must be an integer, 0 or more',
      )
    },
  )
})
