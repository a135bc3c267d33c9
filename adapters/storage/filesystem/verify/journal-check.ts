import { ByteReader } from '../files/bytes.ts'
import { fileName, SYNCED_END_OFFSET } from '../files/file-header.ts'
import { SequentialReader } from '../files/sequential-reader.ts'
import type { GroupFrame } from '../journal/group.ts'
import {
  isClosingGroup,
  type JournalGroup,
  lostGroupsProblem,
  walkGroups,
} from '../journal/journal-reader.ts'
import { type Change, readChanges } from '../state/change.ts'
import type { JournalFile } from '../state/log.ts'
import type { State } from '../state/state.ts'
import { checkBlock, checkFormat, checkPageTable } from './block-check.ts'
import { checkChange } from './change-check.ts'
import type { Place } from './report.ts'
import type { Scan } from './scan.ts'

/**
 * Reads a journal, checks each change against the state, and applies it.
 *
 * @param end The length of the journal by the header of the next one; undefined if there is none.
 */
export async function checkJournal(scan: Scan, number: number, end: number | undefined): Promise<void> {
  await scan.readFile(fileName('journal', number), (reader) => checkGroups(scan, number, reader, end))
}

async function checkGroups(
  scan: Scan,
  number: number,
  reader: SequentialReader,
  end: number | undefined,
): Promise<void> {
  const { findings } = scan
  const file = reader.name
  const header = await reader.header()
  if (header.syncedEnd === undefined) {
    findings.problem({ file, offset: SYNCED_END_OFFSET }, 'the synced length is damaged')
  }
  let isWhole = true
  for await (const step of walkGroups(reader, header, end)) {
    scan.at(reader.offset)
    if (step.kind === 'group') {
      if (!step.isPadded)
        findings.problem({ file, offset: step.group.offset }, 'the padding of a group is not zero')
      await applyGroup(scan, { number, salt: header.salt }, step.group)
    } else if (step.kind === 'torn' && step.offset >= (header.syncedEnd ?? 0)) {
      findings.note(file, `${reader.size - step.offset} bytes of an incomplete write, left by a crash`, step)
    } else {
      isWhole = false
      scan.isPartial = true
      const problem = step.kind === 'torn' ? lostGroupsProblem(header) : step.problem
      findings.problem({ file, offset: step.offset }, problem)
    }
  }
  if (isWhole && end === undefined && reader.offset < (header.syncedEnd ?? 0)) {
    scan.isPartial = true
    findings.problem({ file, offset: reader.offset }, lostGroupsProblem(header))
  }
  if (end !== undefined && end < reader.size && !(isWhole && (await isClosingGroup(reader, header)))) {
    findings.note(file, `${reader.size - end} bytes after its end`, { offset: end })
  }
}

/** The end of the previous journal; undefined if the header cannot be read. */
export async function previousEndOf(scan: Scan, number: number): Promise<number | undefined> {
  const reader = await SequentialReader.open(scan.files, fileName('journal', number)).catch(() => undefined)
  try {
    return (await reader?.header())?.previousEnd
  } catch {
    // Reported when the journal itself is read.
    return undefined
  } finally {
    await reader?.close()
  }
}

async function applyGroup(scan: Scan, journal: JournalFile, group: JournalGroup): Promise<void> {
  const file = fileName('journal', journal.number)
  for (const frame of group.frames) {
    const place = { file, offset: group.offset + frame.offset }
    let changes: readonly Change[]
    try {
      changes = readChanges(new ByteReader(frame.fields), frame.data)
    } catch (error) {
      scan.isPartial = true
      scan.findings.failure(place, error)
      continue
    }
    for (const change of changes) {
      await prepareChange(scan.state, change)
      applyChange(scan, change, frame, journal, place)
    }
  }
  scan.state.release()
}

/** Loads what checking and applying a change needs. */
async function prepareChange(state: State, change: Change): Promise<void> {
  if (change.kind === 'delete') await state.catalog.retain(change.collection, change.key)
  if (change.kind === 'create-log') await state.logs.retainId(change.id)
  await state.prepare(change)
}

function applyChange(
  scan: Scan,
  change: Change,
  frame: GroupFrame,
  journal: JournalFile,
  place: Place,
): void {
  const { state, findings, isPartial } = scan
  const id = 'log' in change ? state.logs.withNumber(change.log)?.id : undefined
  if (change.kind === 'append') checkData(scan, change, frame, place, id)
  if (!isPartial) {
    try {
      checkChange(state, change)
    } catch (error) {
      findings.failure(place, error, id)
    }
  }
  try {
    state.apply(change, { journal, offset: place.offset, bytes: frame.bytes })
  } catch (error) {
    // What it depends on may be lost.
    if (!isPartial) findings.failure(place, error, id)
    scan.isPartial = true
  }
  if (change.kind === 'put') scan.setPlace(change, place)
  if (change.kind === 'append' || change.kind === 'create-log') scan.logPlaces.set(change.log, place)
}

function checkData(
  scan: Scan,
  { log, block }: Extract<Change, { kind: 'append' }>,
  frame: GroupFrame,
  place: Place,
  id: string | undefined,
): void {
  try {
    checkFormat(scan, log, checkBlock(block))
    checkPageTable(frame, [block])
  } catch (error) {
    scan.findings.failure(place, error, id)
  }
}
