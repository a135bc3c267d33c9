import { corrupt } from '../files/errors.ts'
import type { FileHeader } from '../files/file-header.ts'
import type { SequentialReader } from '../files/sequential-reader.ts'
import { isClosingFrame } from '../state/change.ts'
import { GROUP_HEADER_BYTES, type GroupFrame, type GroupHeader, groupFrames, groupHeaderAt } from './group.ts'

/** A complete group. Its bytes are valid until the reader has gone two groups further. */
export interface JournalGroup {
  readonly offset: number
  readonly bytes: number
  readonly frames: readonly GroupFrame[]
}

/** Two buffers in turn, because a caller may look one group ahead: reading a journal leaves no garbage. */
class GroupBuffers {
  #next: Buffer = Buffer.alloc(0)
  #other: Buffer = this.#next

  copy(group: Buffer): Buffer {
    const isLarge = group.length > this.#next.length
    const buffer = isLarge ? Buffer.allocUnsafeSlow(group.length) : this.#next
    this.#next = this.#other
    this.#other = buffer
    group.copy(buffer)
    return buffer.subarray(0, group.length)
  }
}

/** How much is searched at a time for a group after a damaged one. */
const SEARCH_BYTES = 1_048_576
const ALIGNMENT = 8

/**
 * Yields the groups of a journal in order. A journal with a successor has its end there, and must be complete
 * up to it. The last journal may end in a torn tail, which is skipped. If a complete group follows an
 * incomplete one, the latter was acknowledged and is damaged.
 */
export async function* readGroups(
  reader: SequentialReader,
  header: FileHeader,
  end: number | undefined,
): AsyncGenerator<JournalGroup, void, undefined> {
  const buffers = new GroupBuffers()
  for (let sequence = 1; reader.offset < (end ?? reader.size); sequence++) {
    const { offset } = reader
    const found = await peekGroup(reader, header, sequence, buffers)
    if (found !== undefined && offset + found.bytes <= (end ?? reader.size)) {
      yield found
      reader.skip(found.bytes)
      continue
    }
    if (end !== undefined) throw corrupt(reader.name, offset, 'a group is incomplete or damaged')
    if (!header.unsynced) await assertNoLaterGroup(reader, header, sequence)
    return
  }
}

/**
 * Reads the group with this sequence number at the current offset without consuming it; undefined if it is
 * incomplete.
 */
async function peekGroup(
  reader: SequentialReader,
  { salt }: FileHeader,
  sequence: number,
  buffers: GroupBuffers,
): Promise<JournalGroup | undefined> {
  const header = groupHeaderAt(await reader.peek(GROUP_HEADER_BYTES), 0, salt)
  if (header?.sequence !== sequence) return undefined
  const { bytes } = header
  if (reader.offset + bytes > reader.size) return undefined
  const frames = groupFrames(buffers.copy(await reader.peek(bytes)), header, salt)
  return frames && { offset: reader.offset, bytes, frames }
}

async function assertNoLaterGroup(
  reader: SequentialReader,
  header: FileHeader,
  sequence: number,
): Promise<void> {
  const damagedAt = reader.offset
  const later = await seekLaterGroup(reader, header, sequence)
  if (later !== undefined) throw corrupt(reader.name, damagedAt, 'a group is damaged and others follow it')
}

/**
 * Skips to the first group with a later sequence number and returns its header; undefined if there is none.
 * Does not trust lengths, which may be damaged as well. A copy of this journal that a user stored as a record
 * has earlier sequence numbers.
 */
async function seekLaterGroup(
  reader: SequentialReader,
  { salt }: FileHeader,
  sequence: number,
): Promise<GroupHeader | undefined> {
  while (reader.offset < reader.size) {
    const piece = await reader.peek(SEARCH_BYTES + GROUP_HEADER_BYTES)
    for (let i = 0; i < SEARCH_BYTES && i < piece.length; i += ALIGNMENT) {
      const header = groupHeaderAt(piece, i, salt)
      if (header === undefined || header.sequence <= sequence) continue
      reader.skip(i)
      return header
    }
    reader.skip(Math.min(SEARCH_BYTES, reader.size - reader.offset))
  }
  return undefined
}

/** The problem of a journal whose groups end before what its header says was synced. */
export function lostGroupsProblem({ syncedEnd }: FileHeader): string {
  return `groups are missing: everything up to ${syncedEnd} was synced`
}

export type GroupStep =
  | {
      readonly kind: 'group'
      readonly group: JournalGroup
      /** Whether the padding is zero. It has no checksum, and an opening ignores it. */
      readonly isPadded: boolean
    }
  /** An acknowledged group is damaged. The next step is the first complete group after it. */
  | { readonly kind: 'damage'; readonly offset: number; readonly problem: string }
  /** The rest of the file, which an opening skips. */
  | { readonly kind: 'torn'; readonly offset: number }

/** Yields the groups as {@link readGroups} does, but continues after damage. */
export async function* walkGroups(
  reader: SequentialReader,
  header: FileHeader,
  end: number | undefined,
): AsyncGenerator<GroupStep, void, undefined> {
  const limit = end ?? reader.size
  const buffers = new GroupBuffers()
  let isDamaged = false
  for (let sequence = 1; reader.offset < limit; sequence++) {
    const { offset } = reader
    const found = await peekGroup(reader, header, sequence, buffers)
    if (found !== undefined && offset + found.bytes <= limit) {
      yield { kind: 'group', group: found, isPadded: await isPadded(reader, found) }
      reader.skip(found.bytes)
      continue
    }
    if (end === undefined && header.unsynced) {
      yield { kind: 'torn', offset }
      return
    }
    const later = await seekLaterGroup(reader, header, sequence)
    if (later === undefined && end === undefined) {
      yield { kind: 'torn', offset }
      return
    }
    isDamaged = true
    const problem =
      end === undefined ? 'a group is damaged and others follow it' : 'a group is incomplete or damaged'
    yield { kind: 'damage', offset, problem: offset >= reader.size ? 'truncated' : problem }
    if (later === undefined) return
    sequence = later.sequence - 1
  }
  if (end !== undefined && reader.offset !== end && !isDamaged) {
    yield {
      kind: 'damage',
      offset: reader.offset,
      problem: `it should end at ${end}, by the header of the next journal`,
    }
  }
}

/** Resolves to whether the rest of the file is the group of a clean close, which a later journal cuts off. */
export async function isClosingGroup(reader: SequentialReader, { salt }: FileHeader): Promise<boolean> {
  const header = groupHeaderAt(await reader.peek(GROUP_HEADER_BYTES), 0, salt)
  if (header === undefined || reader.offset + header.bytes !== reader.size) return false
  const frames = groupFrames(await reader.peek(header.bytes), header, salt)
  return frames?.length === 1 && isClosingFrame(frames[0]!.fields)
}

async function isPadded(reader: SequentialReader, { bytes, frames }: JournalGroup): Promise<boolean> {
  const last = frames.at(-1)
  if (last === undefined) return true
  const padding = (await reader.peek(bytes)).subarray(last.offset + last.bytes)
  return padding.every((byte) => byte === 0)
}
