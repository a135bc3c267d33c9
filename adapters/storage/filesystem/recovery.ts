import { ByteReader } from './bytes.ts'
import { isClosingFrame, readChanges } from './change-codec.ts'
import { readCheckpoint } from './checkpoint-reader.ts'
import { corrupt, reading } from './failures.ts'
import {
  FILE_HEADER_BYTES,
  type FileHeader,
  type FileKind,
  fileName,
  isTemporaryName,
  parseFileName,
} from './file-header.ts'
import type { Files } from './files.ts'
import { GroupWriter } from './group.ts'
import { type JournalGroup, readGroups } from './journal-reader.ts'
import { type EndedJournal, Journals } from './journals.ts'
import type { JournalFile } from './log.ts'
import { SequentialReader } from './sequential-reader.ts'
import { State } from './state.ts'

export interface Recovered {
  readonly state: State
  readonly journals: Journals
  /** Of the checkpoint; 0 without one. */
  readonly checkpointBytes: number
}

interface Replayed {
  readonly ended: readonly EndedJournal[]
  /** The last group, when it is not known to be durable. It was not applied, and no journal holds it. */
  readonly unsettled: JournalGroup | undefined
}

/** Brings the directory to the state after everything that was acknowledged (docs/storage-format.md "Opening"). */
export async function recover(files: Files, unsynced: boolean): Promise<Recovered> {
  const names = await settledNames(files)
  const found = (kind: FileKind): number[] =>
    names
      .flatMap((name) => parseFileName(name) ?? [])
      .filter((file) => file.kind === kind)
      .map(({ number }) => number)
      .sort((a, b) => a - b)
  const checkpoint = found('checkpoint').at(-1)
  const firstJournal = checkpoint ?? 1
  const wanted = found('journal').filter((number) => number >= firstJournal)
  requireJournals(wanted, firstJournal, checkpoint !== undefined || found('segment').length > 0)

  const loaded = await loadCheckpoint(files, checkpoint)
  const { state } = loaded
  const replayed = await replay(files, state, wanted)
  const nextJournal = (wanted.at(-1) ?? firstJournal - 1) + 1
  const journals = new Journals(files, unsynced, replayed.ended, nextJournal)
  const header = journals.nextHeader()
  if (replayed.unsettled !== undefined) {
    const copy = { number: header.number, salt: header.salt }
    applyGroup(state, replayed.ended.at(-1)!, replayed.unsettled, copy)
  }
  requireSegments(state, new Set(found('segment')))
  // Nothing is written before all is known to be good, and nothing behind it may fail, for nobody would close the journal.
  if (replayed.unsettled !== undefined) await settle(journals, header, replayed.unsettled)
  for (const log of state.logsByNumber.values()) log.findNextExpiry()

  state.takeUnused()
  const isStale = (name: string): boolean => {
    const file = parseFileName(name)
    if (file === undefined) return false
    if (file.kind === 'segment') return !state.segments.has(file.number)
    return file.number < firstJournal
  }
  // What stays is removed at a later opening.
  for (const name of names.filter(isStale)) await files.unlink(name).catch(() => {})
  return { state, journals, checkpointBytes: loaded.bytes }
}

/** The names of the files, after those that a crash left unfinished were removed. What the system had only in memory of them is durable. */
async function settledNames(files: Files): Promise<string[]> {
  const names = await reading(files.list())
  for (const name of names.filter(isTemporaryName)) await reading(files.unlink(name))
  await reading(files.syncDirectory())
  return names.filter((name) => !isTemporaryName(name))
}

function requireJournals(numbers: readonly number[], first: number, mustExist: boolean): void {
  const missing = numbers.findIndex((number, index) => number !== first + index)
  const isMissing = missing >= 0 || (mustExist && numbers.length === 0)
  if (isMissing) throw corrupt(fileName('journal', first + Math.max(missing, 0)), 0, 'it is missing')
}

function requireSegments(state: State, found: ReadonlySet<number>): void {
  for (const { number, runs } of state.segments.values()) {
    if (runs > 0 && !found.has(number)) throw corrupt(fileName('segment', number), 0, 'it is missing')
  }
}

async function loadCheckpoint(
  files: Files,
  number: number | undefined,
): Promise<{ readonly state: State; readonly bytes: number }> {
  if (number === undefined) return { state: new State(), bytes: 0 }
  const reader = await SequentialReader.open(files, fileName('checkpoint', number))
  try {
    return { state: await readCheckpoint(reader), bytes: reader.size }
  } finally {
    await reader.close()
  }
}

async function replay(files: Files, state: State, numbers: readonly number[]): Promise<Replayed> {
  const ends = await endsOf(files, numbers)
  const ended: EndedJournal[] = []
  let unsettled: JournalGroup | undefined
  for (const [index, number] of numbers.entries()) {
    const journal = await replayOne(files, state, number, ends[index + 1])
    ended.push(journal)
    unsettled = journal.unsettled
  }
  return { ended, unsettled }
}

/** Where the journal before each of these ends. */
async function endsOf(files: Files, numbers: readonly number[]): Promise<number[]> {
  const ends: number[] = []
  for (const number of numbers) {
    const reader = await SequentialReader.open(files, fileName('journal', number))
    try {
      ends.push((await reader.header()).previousEnd)
    } finally {
      await reader.close()
    }
  }
  return ends
}

/** Applies the groups of a journal: those up to its end, or all that are whole but the last, which may not be durable. */
async function replayOne(
  files: Files,
  state: State,
  number: number,
  end: number | undefined,
): Promise<EndedJournal & { readonly unsettled: JournalGroup | undefined }> {
  const reader = await SequentialReader.open(files, fileName('journal', number))
  try {
    const header = await reader.header()
    let groupsEnd = FILE_HEADER_BYTES
    let held: JournalGroup | undefined
    const file = { number, salt: header.salt }
    for await (const group of readGroups(reader, header, end)) {
      if (held !== undefined) applyGroup(state, file, held)
      held = group
      groupsEnd = group.offset + group.bytes
    }
    if (end !== undefined && groupsEnd !== end) throw corrupt(reader.name, groupsEnd, 'it is cut short')
    if (header.unsynced) await reader.datasync()
    if (held !== undefined && end === undefined) {
      return { ...file, end: held.offset, unsettled: isClosing(held) ? undefined : held }
    }
    if (held !== undefined) applyGroup(state, file, held)
    return { ...file, end: groupsEnd, unsettled: undefined }
  } finally {
    await reader.close()
  }
}

/** All before an orderly end is known to be durable; itself it may not be, and is not needed. */
function isClosing({ frames }: JournalGroup): boolean {
  return frames.length === 1 && isClosingFrame(frames[0]!.payload)
}

/** `copy` is the journal that begins with the group once it is settled. */
function applyGroup(state: State, foundIn: JournalFile, group: JournalGroup, copy?: JournalFile): void {
  const journal = copy ?? foundIn
  const start = copy === undefined ? group.offset : FILE_HEADER_BYTES
  for (const { payload, offset, bytes } of group.frames) {
    const place = { journal, offset: start + offset, bytes }
    try {
      for (const change of readChanges(new ByteReader(payload))) state.apply(change, place)
    } catch (error) {
      throw corrupt(fileName('journal', foundIn.number), group.offset + offset, (error as Error).message)
    }
  }
}

/** Makes the last group durable before anybody sees it: it becomes the first of a new journal. */
async function settle(journals: Journals, header: FileHeader, { frames }: JournalGroup): Promise<void> {
  const copy = new GroupWriter()
  copy.begin(header.salt)
  for (const { payload } of frames) copy.addCopy(payload)
  await journals.begin({ header, group: copy.end(1) })
}
