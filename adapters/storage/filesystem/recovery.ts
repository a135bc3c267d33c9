import { ByteReader } from './files/bytes.ts'
import { corrupt, decodeOrThrowCorrupt, isFullError, mapFileErrors } from './files/errors.ts'
import {
  FILE_HEADER_BYTES,
  type FileHeader,
  type FileKind,
  fileName,
  isTemporaryName,
  parseFileName,
} from './files/file-header.ts'
import type { Files } from './files/files.ts'
import type { Reserve } from './files/reserve.ts'
import { SequentialReader } from './files/sequential-reader.ts'
import { GroupWriter } from './journal/group.ts'
import { type JournalGroup, lostGroupsProblem, readGroups } from './journal/journal-reader.ts'
import { type EndedJournal, Journals } from './journal/journals.ts'
import { type FramePlace, isClosingFrame, readChanges } from './state/change.ts'
import { type OpenCheckpoint, openCheckpoint } from './state/checkpoint-file.ts'
import type { JournalFile } from './state/log.ts'
import { State } from './state/state.ts'

export interface Recovered {
  readonly state: State
  readonly journals: Journals
  /** The checkpoint, whose pages the state reads; undefined without one. */
  readonly checkpoint: OpenCheckpoint | undefined
}

interface Replayed {
  readonly ended: EndedJournal[]
  /**
   * The last group if it is not known to be durable. It is not applied yet, and the ended journals exclude
   * it.
   */
  readonly unconfirmed: JournalGroup | undefined
}

/** Recovers the state after the last acknowledged change (docs/storage-format.md "Opening"). */
export async function recover(files: Files, reserve: Reserve, unsynced: boolean): Promise<Recovered> {
  try {
    return await recoverWith(files, reserve, unsynced, 'copy')
  } catch (error) {
    if (!isFullError(error)) throw error
    reserve.markFull()
    return reserve.use(() => recoverWith(files, reserve, unsynced, 'rewrite'))
  }
}

/**
 * How the last group is made durable before it becomes visible: as the first group of a new journal, or in
 * its place, which needs no space on most file systems.
 */
type Confirmation = 'copy' | 'rewrite'

async function recoverWith(
  files: Files,
  reserve: Reserve,
  unsynced: boolean,
  confirmation: Confirmation,
): Promise<Recovered> {
  const names = await removeUnfinished(files)
  const found: FoundFiles = {
    names,
    checkpoint: numbersOf(names, 'checkpoint').at(-1),
    segments: new Set(numbersOf(names, 'segment')),
  }
  const first = found.checkpoint ?? 1
  const wanted = numbersOf(names, 'journal').filter((number) => number >= first)
  requireJournals(wanted, first, found.checkpoint !== undefined || found.segments.size > 0)
  const checkpoint =
    found.checkpoint === undefined ? undefined : await openCheckpoint(files, found.checkpoint)
  try {
    const state = checkpoint?.state ?? new State()
    const replayed = await replay(files, state, wanted)
    const next = (wanted.at(-1) ?? first - 1) + 1
    const journals = await confirm({ files, reserve, unsynced, confirmation, state, found }, replayed, next)
    await removeStale(files, state, names, first)
    return { state, journals, checkpoint }
  } catch (error) {
    await checkpoint?.close()
    throw error
  }
}

interface FoundFiles {
  readonly names: readonly string[]
  readonly checkpoint: number | undefined
  readonly segments: ReadonlySet<number>
}

function numbersOf(names: readonly string[], kind: FileKind): number[] {
  return names
    .flatMap((name) => parseFileName(name) ?? [])
    .filter((file) => file.kind === kind)
    .map(({ number }) => number)
    .sort((a, b) => a - b)
}

/** Applies the last group, and makes it durable before anything can see it. */
async function confirm(
  {
    files,
    reserve,
    unsynced,
    confirmation,
    state,
    found,
  }: {
    readonly files: Files
    readonly reserve: Reserve
    readonly unsynced: boolean
    readonly confirmation: Confirmation
    readonly state: State
    readonly found: FoundFiles
  },
  { ended, unconfirmed }: Replayed,
  nextJournal: number,
): Promise<Journals> {
  const last = ended.at(-1)
  const isRewritten = unconfirmed !== undefined && confirmation === 'rewrite'
  if (isRewritten) ended[ended.length - 1] = { ...last!, end: last!.end + unconfirmed.bytes }
  const journals = new Journals(files, reserve, unsynced, ended, nextJournal)
  const header = journals.nextHeader()
  const copy = unconfirmed === undefined || isRewritten ? undefined : copyOfGroup(last!, unconfirmed, header)
  if (unconfirmed !== undefined) await applyGroup(state, last!, unconfirmed, copy)
  requireSegments(state, found.segments)
  // Nothing is written before everything has been checked. Nothing may fail afterwards, because the journal
  // would stay open.
  if (isRewritten) await rewriteInPlace(files, fileName('journal', last!.number), unconfirmed)
  else if (copy !== undefined) await journals.rotate({ header, group: copy.group })
  for (const log of state.logs.changed()) log.updateNextExpiry()
  return journals
}

/** Removes the files that nothing refers to. One that stays is removed at a later opening. */
async function removeStale(
  files: Files,
  state: State,
  names: readonly string[],
  firstJournal: number,
): Promise<void> {
  state.takeUnusedSegments()
  const isStale = (name: string): boolean => {
    const file = parseFileName(name)
    if (file === undefined) return false
    if (file.kind === 'segment') return !state.segments.has(file.number)
    return file.number < firstJournal
  }
  for (const name of names.filter(isStale)) await files.unlink(name).catch(() => {})
}

/** Removes unfinished files of a crash and returns the names of the others, which are durable afterwards. */
async function removeUnfinished(files: Files): Promise<string[]> {
  const names = await mapFileErrors(files.list())
  for (const name of names.filter(isTemporaryName)) await mapFileErrors(files.unlink(name))
  await mapFileErrors(files.syncDirectory())
  return names.filter((name) => !isTemporaryName(name))
}

function requireJournals(numbers: readonly number[], first: number, mustExist: boolean): void {
  const missing = numbers.findIndex((number, index) => number !== first + index)
  const isMissing = missing >= 0 || (mustExist && numbers.length === 0)
  if (isMissing) throw corrupt(fileName('journal', first + Math.max(missing, 0)), 0, 'the file is missing')
}

function requireSegments(state: State, found: ReadonlySet<number>): void {
  for (const { number, runs } of state.segments.values()) {
    if (runs > 0 && !found.has(number)) throw corrupt(fileName('segment', number), 0, 'the file is missing')
  }
}

async function replay(files: Files, state: State, numbers: readonly number[]): Promise<Replayed> {
  const ends = await endsOf(files, numbers)
  const ended: EndedJournal[] = []
  let unconfirmed: JournalGroup | undefined
  for (const [index, number] of numbers.entries()) {
    const journal = await replayOne(files, state, number, ends[index + 1])
    ended.push(journal)
    unconfirmed = journal.unconfirmed
  }
  return { ended, unconfirmed }
}

/** Returns, for each journal, the end of the one before it. */
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

/**
 * Applies the groups of a journal up to its end. In the last journal, all complete groups but the last, which
 * may not be durable.
 */
async function replayOne(
  files: Files,
  state: State,
  number: number,
  end: number | undefined,
): Promise<EndedJournal & { readonly unconfirmed: JournalGroup | undefined }> {
  const reader = await SequentialReader.open(files, fileName('journal', number))
  try {
    const header = await reader.header()
    let groupsEnd = FILE_HEADER_BYTES
    let held: JournalGroup | undefined
    const file = { number, salt: header.salt }
    for await (const group of readGroups(reader, header, end)) {
      if (held !== undefined) await applyGroup(state, file, held)
      held = group
      groupsEnd = group.offset + group.bytes
    }
    if (end !== undefined && groupsEnd !== end) throw corrupt(reader.name, groupsEnd, 'truncated')
    if (end === undefined && groupsEnd < (header.syncedEnd ?? 0)) {
      throw corrupt(reader.name, groupsEnd, lostGroupsProblem(header))
    }
    if (header.unsynced) await mapFileErrors(syncFile(files, reader.name))
    if (held !== undefined && end === undefined) {
      return { ...file, end: held.offset, unconfirmed: isClosing(held) ? undefined : held }
    }
    if (held !== undefined) await applyGroup(state, file, held)
    return { ...file, end: groupsEnd, unconfirmed: undefined }
  } finally {
    await reader.close()
  }
}

/** Syncs a file that was written without a sync. Windows requires that it is open for writing. */
async function syncFile(files: Files, name: string): Promise<void> {
  const file = await files.open(name, 'update')
  try {
    await file.datasync()
  } finally {
    await file.close()
  }
}

/**
 * A closing group proves that everything before it is durable. It may not be durable itself, and is not
 * needed.
 */
function isClosing({ frames }: JournalGroup): boolean {
  return frames.length === 1 && isClosingFrame(frames[0]!.fields)
}

/** Applies the changes of a group, whose frames are in `copy` if there is one. */
async function applyGroup(
  state: State,
  foundIn: JournalFile,
  group: JournalGroup,
  copy?: GroupCopy,
): Promise<void> {
  const file = fileName('journal', foundIn.number)
  for (const [index, { fields, data, offset, bytes }] of group.frames.entries()) {
    const place = copy?.places[index] ?? { journal: foundIn, offset: group.offset + offset, bytes }
    const decode = () => readChanges(new ByteReader(fields), data)
    for (const change of decodeOrThrowCorrupt(file, group.offset + offset, decode)) {
      const loading = state.prepare(change)
      if (loading !== undefined) await loading
      decodeOrThrowCorrupt(file, group.offset + offset, () => state.apply(change, place))
    }
  }
  state.release()
}

/**
 * Writes the same bytes again, because the system may have lost them without a trace, and cuts off the torn
 * tail. A crash meanwhile leaves a torn tail, as before.
 */
async function rewriteInPlace(files: Files, name: string, { offset, bytes }: JournalGroup): Promise<void> {
  const group = new Uint8Array(bytes)
  const file = await mapFileErrors(files.open(name, 'update'))
  try {
    const count = await mapFileErrors(file.read(group, offset))
    if (count < bytes) throw corrupt(name, offset + count, 'truncated')
    await mapFileErrors(file.write(group, offset))
    await mapFileErrors(file.truncate(offset + bytes))
    await mapFileErrors(file.datasync())
  } finally {
    await file.close().catch(() => {})
  }
}

/** A group as the first of a new journal. */
interface GroupCopy {
  readonly group: Buffer
  readonly places: readonly FramePlace[]
}

/** Frames may have other lengths than before: they are encoded again, with another salt. */
function copyOfGroup(foundIn: JournalFile, group: JournalGroup, { number, salt }: FileHeader): GroupCopy {
  const file = fileName('journal', foundIn.number)
  const journal = { number, salt }
  const writer = new GroupWriter()
  writer.begin(salt)
  const places = group.frames.map(({ fields, data, offset }) => {
    const add = () => writer.add(readChanges(new ByteReader(fields), data))
    const place = decodeOrThrowCorrupt(file, group.offset + offset, add)
    return { journal, offset: FILE_HEADER_BYTES + place.offset, bytes: place.bytes }
  })
  return { group: writer.end(1), places }
}
