import fc from 'fast-check'
import { ByteReader, ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import {
  GroupWriter,
  groupFrames,
  groupHeaderAt,
} from '../../../../adapters/storage/filesystem/journal/group.ts'
import { decodeAppendFrame } from '../../../../adapters/storage/filesystem/journal/journal-blocks.ts'
import {
  type Change,
  readChanges,
  writeChange,
} from '../../../../adapters/storage/filesystem/state/change.ts'
import { withFrames, withGroup } from '../checksums.ts'
import { checkNumbers, equal, ok } from '../harness/assertions.ts'
import { nothing, rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { append, changes, largeBlock } from '../storage-models.ts'

const SALT = 0x5eed
const KINDS = Array.from({ length: 11 }, (_, kind) => Uint8Array.of(kind))
/** Numbers whose sum with the preceding ones is 2^53 - 1 or more. */
const NUMBERS = [
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f),
  Uint8Array.of(0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10),
  Uint8Array.of(0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10),
]

/** The data of all appends, which are not part of the changes. */
const DATA = Uint8Array.of(1, 2, 3)

function withData(change: Change): Change {
  return change.kind === 'append' ? { ...change, block: { ...change.block, data: DATA } } : change
}

function fieldsOf(of: readonly Change[]): Buffer {
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

/** Reads a group as recovery does; undefined if it is incomplete. */
function wholeGroup(bytes: Buffer) {
  const header = groupHeaderAt(bytes, 0, SALT)
  const frames = header && header.bytes <= bytes.length ? groupFrames(bytes, header, SALT) : undefined
  return header && frames && { header, frames }
}

export const journalChanges = target({
  name: 'journal-changes',
  models: changes.map((of) => of.map(withData)),
  encode: fieldsOf,
  decode: (input: Uint8Array) => readChanges(new ByteReader(Buffer.from(input)), DATA),
  means: (of) => of,
  refuses: rangeError,
  verify(of) {
    checkNumbers(of)
    equal(readChanges(new ByteReader(fieldsOf(of)), DATA), of, 'the changes, written and read again')
  },
  words: [...KINDS, ...NUMBERS],
  share: 60,
})

/** The frame of an append, as a read finds it in a journal. */
export const appendFrame = target({
  name: 'append-frame',
  models: fc.oneof(
    append,
    fc.tuple(append, largeBlock).map(([of, block]) => ({ ...of, block })),
  ),
  encode: (change) => groupOf([[change]]).subarray(24),
  decode: (input: Uint8Array) => decodeAppendFrame(Buffer.from(input), SALT),
  means: ({ log, block }) => ({ log, block }),
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
    for (const { offset, bytes, data } of frames) {
      equal(offset, end, 'where a frame begins')
      ok(data.length + 12 <= bytes, 'data beyond the frame')
      end = offset + bytes
    }
    equal(end, 24 + header.framesBytes, 'where the frames end')
    ok(header.bytes % 8 === 0 && header.bytes <= input.length, 'a group of no whole words')
  },
  repair: (input) => withGroup(input, SALT),
  words: [Uint8Array.of(0x47, 0x52, 0x55, 0x50), ...NUMBERS],
  share: 20,
})
