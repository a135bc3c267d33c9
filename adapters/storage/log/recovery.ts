import type { BlockSummary } from '../../../src/storage/block-collector.ts'
import type { Durability } from '../../../src/storage/contract.ts'
import type { Medium, MediumFile, ReadableMedium } from '../media/medium.ts'
import { type Change, decodeChange } from './changes.ts'
import { readCheckpoint } from './checkpoint.ts'
import {
  checkedEnd,
  corrupt,
  decodeGroupHeader,
  decodeHeader,
  decodeOrThrowCorrupt,
  type FileHeader,
  type FileKind,
  fileName,
  findGroup,
  GROUP_CLOSED,
  GROUP_HEADER_BYTES,
  GROUP_UNSYNCED,
  type GroupHeader,
  HEADER_BYTES,
  parseFileName,
  readFrame,
} from './format.ts'
import { type FramePlace, Journal, type JournalFile } from './journal.ts'
import { assertLength } from './segment.ts'
import type { Space } from './space.ts'
import { State } from './state.ts'

export interface Recovered {
  readonly state: State
  readonly journal: Journal
  /** Length of the checkpoint; 0 without one. */
  readonly checkpointBytes: number
}

/** Recovers the state after the last acknowledged change (docs/storage-format.md "Opening"). */
export async function recover(medium: Medium, space: Space, durability: Durability): Promise<Recovered> {
  const found = new FoundFiles(await medium.list())
  const { state, journals } = await replay(medium, found)
  state.nextSegment = Math.max(state.nextSegment, medium.firstSegment ?? 1)
  const last = journals.at(-1)
  // Nothing is written before everything was checked: an opening that finds damage changes nothing.
  for (const name of found.torn) await medium.remove(name)
  if (last !== undefined && !last.isDurable) {
    const name = fileName('journal', last.number)
    await space.write('frees', () => medium.resume(name, last.lastGroup, last.end))
  }
  const next = last?.nextGroup ?? 1
  // That of a torn journal, if there was one: journals have no gaps.
  const nextFile = last === undefined ? found.first : last.number + 1
  const journal = new Journal(medium, durability, journals, nextFile, next)
  await removeUnused(medium, state, found.first)
  return { state, journal, checkpointBytes: found.checkpointBytes }
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
  return file.kind === 'segment' ? !state.segments.get(file.number)?.runs : file.number < firstJournal
}

/** The files of a medium. */
export class FoundFiles {
  readonly #bytes: ReadonlyMap<string, number>
  /** The newest checkpoint. */
  readonly checkpoint: number | undefined
  /** The number of the first journal that counts. */
  readonly first: number
  readonly journals: readonly number[]
  readonly segments: readonly number[]
  /** Journals whose creation was not completed. */
  readonly torn: string[] = []

  constructor(files: readonly MediumFile[]) {
    this.#bytes = new Map(files.map(({ name, bytes }) => [name, bytes]))
    const numbersOf = (kind: FileKind) =>
      files
        .flatMap(({ name }) => parseFileName(name) ?? [])
        .filter((file) => file.kind === kind)
        .map(({ number }) => number)
        .sort((a, b) => a - b)
    this.checkpoint = numbersOf('checkpoint').at(-1)
    this.first = this.checkpoint ?? 1
    this.journals = numbersOf('journal').filter((number) => number >= this.first)
    this.segments = numbersOf('segment')
  }

  bytesOf(kind: FileKind, number: number): number | undefined {
    return this.#bytes.get(fileName(kind, number))
  }

  get checkpointBytes(): number {
    return this.checkpoint === undefined ? 0 : this.bytesOf('checkpoint', this.checkpoint)!
  }

  /** Throws if a journal is missing. */
  assertComplete(): void {
    const { journals, first, checkpoint, segments } = this
    const missing = journals.findIndex((number, index) => number !== first + index)
    const isEmpty = journals.length === 0 && (checkpoint !== undefined || segments.length > 0)
    if (missing < 0 && !isEmpty) return
    throw corrupt(fileName('journal', first + Math.max(missing, 0)), 0, 'the file is missing')
  }
}

/** A journal as an opening finds it. */
interface FoundJournal extends JournalFile {
  /** Where its last group begins. */
  readonly lastGroup: number
  /** Whether everything before its end is durable, and nothing follows. */
  readonly isDurable: boolean
  /** The number of the next group. */
  readonly nextGroup: number
}

/**
 * Reads the newest checkpoint, and applies the journals. Changes no files.
 *
 * @param onBlock Receives the blocks in the journals.
 */
export async function replay(
  medium: ReadableMedium,
  found: FoundFiles,
  onBlock?: (block: BlockSummary, data: Uint8Array) => void,
): Promise<{ readonly state: State; readonly journals: readonly FoundJournal[] }> {
  found.assertComplete()
  const { checkpoint } = found
  const state =
    checkpoint === undefined ? new State() : await readCheckpoint(medium, checkpoint, found.checkpointBytes)
  const open = await readJournals(medium, found)
  const journals = open.map((journal, index) =>
    replayJournal(journal, open[index + 1]?.header.firstGroup, (change, place, data) => {
      if (onBlock && change.kind === 'block') onBlock(change.block, data)
      state.apply(change, journal.header.number, place)
    }),
  )
  for (const { number, bytes, runs } of state.segments.values()) {
    if (runs > 0) assertLength(number, bytes, found.bytesOf('segment', number))
  }
  return { state, journals }
}

interface OpenJournal {
  readonly name: string
  readonly bytes: Buffer
  readonly header: FileHeader
}

/** The last journal may have been created incompletely: then it has no groups, and does not count. */
async function readJournals(medium: ReadableMedium, found: FoundFiles): Promise<readonly OpenJournal[]> {
  const open: OpenJournal[] = []
  for (const number of found.journals) {
    const name = fileName('journal', number)
    const bytes = await medium.read(name, 0, found.bytesOf('journal', number)!)
    try {
      open.push({ name, bytes, header: decodeHeader(bytes, name) })
    } catch (error) {
      const isTorn = bytes.length <= HEADER_BYTES && number === found.journals.at(-1)
      // The checkpoint was written after it.
      if (!isTorn || number === found.checkpoint) throw error
      found.torn.push(name)
    }
  }
  return open
}

/**
 * Applies the groups of a journal. The last journal may end with an incomplete group, which is left out.
 * Anything else that is missing or damaged is a `corrupt` failure.
 *
 * @param nextFirst The number of the first group of the next journal; undefined in the last journal.
 * @param onChange Receives each change, the place of its frame, and the data of the frame.
 */
function replayJournal(
  { name, bytes, header: { number, salt, firstGroup } }: OpenJournal,
  nextFirst: number | undefined,
  onChange: (change: Change, place: FramePlace, data: Buffer) => void,
): FoundJournal {
  let offset = HEADER_BYTES
  // Without a group, the header is the last piece, of which nothing tells whether it is durable.
  let lastGroup = 0
  let nextGroup = firstGroup
  let flags = 0
  for (;;) {
    const header = decodeGroupHeader(bytes, offset, salt)
    if (header === undefined || !hasFrames(bytes, offset, header, salt)) break
    if (header.number !== nextGroup) throw corrupt(name, offset, 'groups are missing before it')
    flags = header.flags
    lastGroup = offset
    offset += GROUP_HEADER_BYTES
    for (let i = 0; i < header.frames; i++) {
      decodeOrThrowCorrupt(name, offset, () => {
        const { payload, data, end } = readFrame(bytes, offset, salt)
        const place = { offset, bytes: end - offset }
        for (const change of payload as unknown[]) onChange(decodeChange(change), place, data)
        offset = end
      })
    }
    nextGroup++
  }
  const isTorn = offset < bytes.length
  if (nextFirst !== undefined) {
    if (isTorn || nextGroup !== nextFirst) throw corrupt(name, offset, 'a group is damaged or missing')
  } else if (isTorn && hasSyncedGroup(bytes, offset + 1, salt)) {
    throw corrupt(name, offset, 'a group is damaged, and others follow')
  }
  const isDurable = !isTorn && (flags & GROUP_CLOSED) !== 0
  return { number, salt, end: offset, lastGroup, isDurable, nextGroup }
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
