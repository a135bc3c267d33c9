import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Durability } from '../../../src/storage/contract.ts'
import { Damage, type Medium, type MediumFile, MissingFile, type ReadableMedium } from '../media/medium.ts'
import { decodeChange } from './changes.ts'
import { readCheckpoint } from './checkpoint.ts'
import {
  checkedEnd,
  decodeGroupHeader,
  decodeHeader,
  decodeOrThrowCorrupt,
  type FileHeader,
  type FileKind,
  fileName,
  findGroup,
  GROUP_HEADER_BYTES,
  GROUP_UNSYNCED,
  type GroupHeader,
  HEADER_BYTES,
  parseFileName,
  readFrame,
} from './format.ts'
import { Journal, type JournalFile } from './journal.ts'
import { assertLength } from './segment.ts'
import type { Space } from './space.ts'
import { State } from './state.ts'

export interface Recovered {
  readonly state: State
  readonly journal: Journal
  /** Length of the checkpoint; 0 without one. */
  readonly checkpointBytes: number
}

/** Recovers the state after the last acknowledged change (docs/storage-format.md "An opening"). */
export async function recover(
  medium: Medium,
  files: readonly MediumFile[],
  space: Space,
  durability: Durability,
): Promise<Recovered> {
  const { state, first, journals, last, torn, checkpointBytes } = await replay(medium, files)
  // Nothing is written before everything was checked: an opening that finds damage changes nothing.
  if (torn?.offset === 0) await medium.remove(torn.file)
  if (last !== undefined) {
    await space.write('frees', () => medium.resume(last.name, last.unsynced.offset, last.unsynced.bytes))
  }
  const journal = new Journal(medium, durability, journals, first + journals.length, last?.nextGroup ?? 1)
  await removeUnused(medium, state, first)
  return { state, journal, checkpointBytes }
}

/** Removes what nothing refers to. A file that stays is removed later. */
export async function removeUnused(medium: Medium, state: State, firstJournal: number): Promise<void> {
  for (const { name } of await medium.list()) {
    if (isUnused(name, state, firstJournal)) await medium.remove(name).catch(() => {})
  }
}

/** Whether nothing refers to a file. */
export function isUnused(name: string, state: State, firstJournal: number): boolean {
  const file = parseFileName(name)
  if (file === undefined) return false
  return file.kind === 'segment' ? !state.segments.has(file.number) : file.number < firstJournal
}

/** The result of an opening. */
export interface Replayed {
  readonly state: State
  /** The number of the newest checkpoint, and of the first journal that counts. */
  readonly first: number
  /** Those that count, without gaps. */
  readonly journals: readonly JournalFile[]
  readonly last: LastJournal | undefined
  /** An incomplete group at the end of the last journal, or a journal that was created incompletely. */
  readonly torn: { readonly file: string; readonly offset: number } | undefined
  readonly checkpointBytes: number
}

/** The journal that an opening continues. */
interface LastJournal {
  readonly name: string
  /** The last groups, as far as they may not be durable. Without a group, the header. */
  readonly unsynced: { readonly offset: number; readonly bytes: Buffer }
  readonly nextGroup: number
}

/**
 * Reads the newest checkpoint, and applies the journals. Changes no files.
 *
 * @param onBlock Receives the blocks in the journals.
 */
export async function replay(
  medium: ReadableMedium,
  files: readonly MediumFile[],
  onBlock?: (block: BlockSummary, data: Uint8Array) => void,
): Promise<Replayed> {
  const lengths = new Map(files.map(({ name, bytes }) => [name, bytes]))
  const numbersOf = (kind: FileKind) =>
    files
      .flatMap(({ name }) => parseFileName(name) ?? [])
      .flatMap((file) => (file.kind === kind ? file.number : []))
      .sort((a, b) => a - b)
  const checkpoint = numbersOf('checkpoint').at(-1)
  const first = checkpoint ?? 1
  const checkpointBytes = lengths.get(fileName('checkpoint', first)) ?? 0
  const state =
    checkpoint === undefined ? new State() : await readCheckpoint(medium, checkpoint, checkpointBytes)
  const open: OpenJournal[] = []
  let torn: Replayed['torn']
  const numbers = numbersOf('journal').filter((number) => number >= first)
  for (const [index, number] of numbers.entries()) {
    if (number !== first + index) throw new MissingFile(fileName('journal', first + index))
    const name = fileName('journal', number)
    const bytes = await medium.read(name, 0, lengths.get(name)!)
    // A checkpoint is written after its journal, and a group after the header.
    const mayBeTorn = index === numbers.length - 1 && number !== checkpoint && bytes.length <= HEADER_BYTES
    try {
      open.push({ name, bytes, ...decodeHeader(bytes, name) })
    } catch (error) {
      if (!mayBeTorn) throw error
      torn = { file: name, offset: 0 }
    }
  }
  const isWritten = checkpoint !== undefined || numbersOf('segment').length > 0
  if (numbers.length === 0 && isWritten) throw new MissingFile(fileName('journal', first))
  const journals: JournalFile[] = []
  let last: LastJournal | undefined
  for (const [index, journal] of open.entries()) {
    const { end, ...found } = replayJournal(journal, open[index + 1]?.firstGroup, state, onBlock)
    const { name, number, salt, firstGroup, bytes } = journal
    journals.push({ number, salt, firstGroup, end })
    last = { name, ...found }
    if (end < bytes.length) torn = { file: name, offset: end }
  }
  for (const { number, bytes, runs } of state.segments.values()) {
    if (runs > 0) assertLength(number, bytes, lengths.get(fileName('segment', number)))
    else state.segments.delete(number)
  }
  return { state, first, journals, last, torn, checkpointBytes }
}

interface OpenJournal extends FileHeader {
  readonly name: string
  readonly bytes: Buffer
}

/**
 * Applies the groups of a journal. The last journal may end with an incomplete group, which is left out.
 * Anything else that is missing or damaged is a `corrupt` failure.
 *
 * @param nextFirst The number of the first group of the next journal; undefined in the last journal.
 */
function replayJournal(
  { name, bytes, number, salt, firstGroup }: OpenJournal,
  nextFirst: number | undefined,
  state: State,
  onBlock: ((block: BlockSummary, data: Uint8Array) => void) | undefined,
) {
  let end = HEADER_BYTES
  let unsyncedOffset = 0
  let nextGroup = firstGroup
  for (;;) {
    const header = decodeGroupHeader(bytes, end, salt)
    if (header === undefined || !hasFrames(bytes, end, header, salt)) break
    if (header.number !== nextGroup) throw new Damage(name, end, 'groups are missing before it')
    if ((header.flags & GROUP_UNSYNCED) === 0) unsyncedOffset = end
    end += GROUP_HEADER_BYTES
    for (let i = 0; i < header.frames; i++) {
      const offset = end
      end = decodeOrThrowCorrupt(name, offset, () => {
        const frame = readFrame(bytes, offset, salt)
        for (const encoded of frame.payload as unknown[]) {
          const change = decodeChange(encoded)
          if (onBlock && change.kind === 'block') onBlock(change.block, frame.data)
          state.apply(change, number, { offset, bytes: frame.end - offset })
        }
        return frame.end
      })
    }
    nextGroup++
  }
  const isTorn = end < bytes.length
  if (nextFirst !== undefined) {
    if (isTorn || nextGroup !== nextFirst) throw new Damage(name, end, 'a group is damaged or missing')
  } else if (isTorn && hasSyncedGroup(bytes, end + 1, salt)) {
    throw new Damage(name, end, 'a group is damaged, and others follow')
  }
  const unsynced = { offset: unsyncedOffset, bytes: bytes.subarray(unsyncedOffset, end) }
  return { end, unsynced, nextGroup }
}

/** Whether the group at `offset` is complete. */
function hasFrames(bytes: Buffer, offset: number, group: GroupHeader, salt: number): boolean {
  try {
    let end = offset + GROUP_HEADER_BYTES
    for (let i = 0; i < group.frames; i++) end = checkedEnd(bytes, end, salt)
    return end === offset + GROUP_HEADER_BYTES + group.bytes
  } catch {
    return false
  }
}

/**
 * Whether a group follows that proves that what is before it was durable. A group that was written without a
 * sync proves nothing, because a power loss may keep it and lose earlier ones.
 */
function hasSyncedGroup(bytes: Buffer, start: number, salt: number): boolean {
  for (let at = findGroup(bytes, start); at >= 0; at = findGroup(bytes, at + 1)) {
    const header = decodeGroupHeader(bytes, at, salt)
    if (header !== undefined && (header.flags & GROUP_UNSYNCED) === 0) return true
  }
  return false
}
