import type { FileHeader } from '../file-header.ts'
import { groupHere, type JournalGroup, seekLaterGroup } from '../journal-reader.ts'
import type { SequentialReader } from '../sequential-reader.ts'

export type GroupStep =
  | {
      readonly kind: 'group'
      readonly group: JournalGroup
      /** Whether zeros fill it up, which no checksum covers, and no opening looks at. */
      readonly isPadded: boolean
    }
  /** A group that was acknowledged is not whole; what comes next is the first one behind it that is. */
  | { readonly kind: 'damage'; readonly offset: number; readonly problem: string }
  /** What an opening leaves out, up to the end of the file. */
  | { readonly kind: 'torn'; readonly offset: number }

/** Goes through a journal as `readGroups` does, takes no less for damage, and goes on behind it. */
export async function* walkGroups(
  reader: SequentialReader,
  header: FileHeader,
  end: number | undefined,
): AsyncGenerator<GroupStep, void, undefined> {
  const limit = end ?? reader.size
  let isDamaged = false
  for (let sequence = 1; reader.offset < limit; sequence++) {
    const { offset } = reader
    const found = await groupHere(reader, header, sequence)
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
    const problem = end === undefined ? 'a group is not whole, and others follow' : 'a group is not whole'
    yield { kind: 'damage', offset, problem: offset >= reader.size ? 'it is cut short' : problem }
    if (later === undefined) return
    sequence = later.sequence - 1
  }
  if (end !== undefined && reader.offset !== end && !isDamaged) {
    yield { kind: 'damage', offset: reader.offset, problem: `the next journal says that it ends at ${end}` }
  }
}

async function isPadded(reader: SequentialReader, { bytes, frames }: JournalGroup): Promise<boolean> {
  const last = frames.at(-1)
  if (last === undefined) return true
  const padding = (await reader.peek(bytes)).subarray(last.offset + last.bytes)
  return padding.every((byte) => byte === 0)
}
