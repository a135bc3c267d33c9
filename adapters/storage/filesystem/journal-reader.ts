import { corrupt } from './failures.ts'
import type { FileHeader } from './file-header.ts'
import { GROUP_HEADER_BYTES, type GroupFrame, type GroupHeader, groupFrames, groupHeaderAt } from './group.ts'
import type { SequentialReader } from './sequential-reader.ts'

/** A group that is whole. */
export interface JournalGroup {
  readonly offset: number
  readonly bytes: number
  readonly frames: readonly GroupFrame[]
}

/** What follows a group that is not whole is searched in pieces of this size. */
const SEARCH_BYTES = 1_048_576
const ALIGNMENT = 8

/**
 * The groups of a journal in order. One that has a successor ends where that says; all up to there must be whole. The last may end in a torn tail, which
 * is left out; but when a later group follows what is not whole, that was acknowledged once, and is damaged.
 */
export async function* readGroups(
  reader: SequentialReader,
  header: FileHeader,
  end: number | undefined,
): AsyncGenerator<JournalGroup, void, undefined> {
  for (let sequence = 1; reader.offset < (end ?? reader.size); sequence++) {
    const { offset } = reader
    const found = await groupHere(reader, header, sequence)
    if (found !== undefined && offset + found.bytes <= (end ?? reader.size)) {
      yield found
      reader.skip(found.bytes)
      continue
    }
    if (end !== undefined) throw corrupt(reader.name, offset, 'a group is not whole')
    if (!header.unsynced) await refuseLaterGroup(reader, header, sequence)
    return
  }
}

/** The group with this number that begins here; undefined when it is not whole. Does not move on. */
export async function groupHere(
  reader: SequentialReader,
  { salt }: FileHeader,
  sequence: number,
): Promise<JournalGroup | undefined> {
  const header = groupHeaderAt(await reader.peek(GROUP_HEADER_BYTES), 0, salt)
  if (header?.sequence !== sequence) return undefined
  const { bytes } = header
  if (reader.offset + bytes > reader.size) return undefined
  // A copy, for whoever goes through the groups may look one ahead.
  const frames = groupFrames(Buffer.from(await reader.peek(bytes)), header, salt)
  return frames && { offset: reader.offset, bytes, frames }
}

async function refuseLaterGroup(
  reader: SequentialReader,
  header: FileHeader,
  sequence: number,
): Promise<void> {
  const damagedAt = reader.offset
  const later = await seekLaterGroup(reader, header, sequence)
  if (later !== undefined) throw corrupt(reader.name, damagedAt, 'a group is not whole, and others follow')
}

/**
 * Moves on to the first group with a later number, wherever it is, and resolves to its header; undefined when there is none. Lengths are not believed: the group
 * at the end of one that is not whole may be damaged too. A copy of this journal that a user stored in it has earlier numbers.
 */
export async function seekLaterGroup(
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
