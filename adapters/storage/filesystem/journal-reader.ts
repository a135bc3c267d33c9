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

/** What a damaged header makes us look for is searched in pieces of this size. */
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
    if ('frames' in found && offset + found.bytes <= (end ?? reader.size)) {
      yield found
      reader.skip(found.bytes)
      continue
    }
    if (end !== undefined) throw corrupt(reader.name, offset, 'a group is not whole')
    if (!header.unsynced) await refuseLaterGroup(reader, header, sequence, found.bytes)
    return
  }
}

async function groupHere(
  reader: SequentialReader,
  { salt }: FileHeader,
  sequence: number,
): Promise<JournalGroup | { readonly bytes: number | undefined }> {
  const header = groupHeaderAt(await reader.peek(GROUP_HEADER_BYTES), 0, salt)
  if (header?.sequence !== sequence) return { bytes: undefined }
  const { bytes } = header
  if (reader.offset + bytes > reader.size) return { bytes }
  // A copy, for whoever goes through the groups may look one ahead.
  const frames = groupFrames(Buffer.from(await reader.peek(bytes)), header, salt)
  return frames === undefined ? { bytes } : { offset: reader.offset, bytes, frames }
}

/** Looks for a group behind the one that is not whole: where that ends by its own account, or everywhere when its header is lost. */
async function refuseLaterGroup(
  reader: SequentialReader,
  { salt }: FileHeader,
  sequence: number,
  bytes: number | undefined,
): Promise<void> {
  const damagedAt = reader.offset
  const refuse = (header: GroupHeader | undefined): void => {
    if (header !== undefined && header.sequence > sequence) {
      throw corrupt(reader.name, damagedAt, 'a group is not whole, and others follow')
    }
  }
  if (bytes !== undefined) {
    reader.skip(bytes)
    refuse(groupHeaderAt(await reader.peek(GROUP_HEADER_BYTES), 0, salt))
    return
  }
  while (reader.offset < reader.size) {
    const piece = await reader.peek(SEARCH_BYTES + GROUP_HEADER_BYTES)
    for (let i = 0; i < SEARCH_BYTES && i < piece.length; i += ALIGNMENT)
      refuse(groupHeaderAt(piece, i, salt))
    reader.skip(SEARCH_BYTES)
  }
}
