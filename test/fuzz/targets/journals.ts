import fc from 'fast-check'
import { decodeAppendFrame } from '../../../adapters/storage/filesystem/append-frame.ts'
import { ByteReader, ByteWriter } from '../../../adapters/storage/filesystem/bytes.ts'
import { readChanges, writeChange } from '../../../adapters/storage/filesystem/change-codec.ts'
import type { Change } from '../../../adapters/storage/filesystem/changes.ts'
import { GroupWriter, groupFrames, groupHeaderAt } from '../../../adapters/storage/filesystem/group.ts'
import { withFrames, withGroup } from '../checksums.ts'
import { equal, ok } from '../harness/equal.ts'
import { checkNumbers } from '../harness/numbers.ts'
import { nothing, rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { append, changes } from '../storage-models.ts'

const SALT = 0x5eed
const KINDS = Array.from({ length: 11 }, (_, kind) => Uint8Array.of(kind))
/** Numbers that are 2^53 - 1 together with those before them, and beyond. */
const NUMBERS = [
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f),
  Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10),
  Uint8Array.of(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10),
]

function payloadOf(of: readonly Change[]): Buffer {
  const writer = new ByteWriter(64)
  for (const change of of) writeChange(writer, change)
  return Buffer.from(writer.bytes)
}

function groupOf(frames: readonly (readonly Change[])[]): Buffer {
  const writer = new GroupWriter()
  writer.begin(SALT)
  for (const frame of frames) writer.add(frame)
  return Buffer.from(writer.end(7))
}

/** As recovery reads it; undefined when it is not whole. */
function wholeGroup(bytes: Buffer) {
  const header = groupHeaderAt(bytes, 0, SALT)
  const frames = header && header.bytes <= bytes.length ? groupFrames(bytes, header, SALT) : undefined
  return header && frames && { header, frames }
}

export const journalChanges = target({
  name: 'journal-changes',
  models: changes,
  encode: payloadOf,
  decode: (input: Uint8Array) => readChanges(new ByteReader(Buffer.from(input))),
  means: (of) => of,
  refuses: rangeError,
  verify(of) {
    checkNumbers(of)
    equal(readChanges(new ByteReader(payloadOf(of))), of, 'the changes, written and read again')
  },
  words: [...KINDS, ...NUMBERS],
  share: 60,
})

/** The frame of an append, as a read finds it in a journal. */
export const appendFrame = target({
  name: 'append-frame',
  models: append,
  encode: (change) => groupOf([[change]]).subarray(24),
  decode: (input: Uint8Array) => decodeAppendFrame(Buffer.from(input), SALT),
  means: ({ log, block, data }) => ({ log, block: { ...block, data } }),
  refuses: rangeError,
  verify: checkNumbers,
  repair: (input) => withFrames(input, SALT),
  words: NUMBERS,
  share: 20,
})

export const journalGroup = target({
  name: 'journal-group',
  models: fc.array(changes, { maxLength: 3 }),
  encode: (frames): Uint8Array => groupOf(frames),
  decode: (input: Uint8Array) => wholeGroup(Buffer.from(input)),
  refuses: nothing,
  verify(group, input) {
    if (group === undefined) return
    const { header, frames } = group
    checkNumbers(header)
    equal(frames.length, header.frames, 'how many frames there are')
    let end = 24
    for (const { offset, bytes, payload } of frames) {
      equal(offset, end, 'where a frame begins')
      equal(payload.length + 8, bytes, 'the length of a frame')
      end = offset + bytes
    }
    equal(end, 24 + header.framesBytes, 'where the frames end')
    ok(header.bytes % 8 === 0 && header.bytes <= input.length, 'a group of no whole words')
  },
  repair: (input) => withGroup(input, SALT),
  words: [Uint8Array.of(0x47, 0x52, 0x55, 0x50), ...NUMBERS],
  share: 20,
})
