import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { ByteReader } from '../bytes.ts'
import { readChanges } from '../change-codec.ts'
import type { Change } from '../changes.ts'
import { fileName } from '../file-header.ts'
import type { GroupFrame } from '../group.ts'
import type { JournalGroup } from '../journal-reader.ts'
import type { JournalFile } from '../log.ts'
import { SequentialReader } from '../sequential-reader.ts'
import { checkBlock, checkFormat } from './block-check.ts'
import { checkChange } from './change-check.ts'
import type { Place } from './findings.ts'
import { walkGroups } from './group-walk.ts'
import type { Scan } from './scan.ts'

/**
 * Reads a journal, holds each change to the state and makes it there.
 *
 * @param end Where the next journal says that it ends; undefined for the last one, or when that is not known.
 */
export async function checkJournal(scan: Scan, number: number, end: number | undefined): Promise<void> {
  const file = fileName('journal', number)
  const { findings } = scan
  let reader: SequentialReader
  try {
    reader = await SequentialReader.open(scan.files, file)
  } catch (error) {
    scan.isPartial = true
    findings.failure({ file, offset: 0 }, error)
    return
  }
  scan.begin(file)
  try {
    const header = await reader.header()
    for await (const step of walkGroups(reader, header, end)) {
      scan.at(reader.offset)
      if (step.kind === 'group') {
        if (!step.isPadded)
          findings.problem({ file, offset: step.group.offset }, 'what fills a group up is not zero')
        applyGroup(scan, { number, salt: header.salt }, step.group)
      } else if (step.kind === 'torn') {
        findings.note(file, `${reader.size - step.offset} bytes that a crash left unfinished`, step)
      } else {
        scan.isPartial = true
        findings.problem({ file, offset: step.offset }, step.problem)
      }
    }
    if (end !== undefined && end < reader.size) {
      findings.note(file, `${reader.size - end} bytes behind its end`, { offset: end })
    }
  } catch (error) {
    scan.isPartial = true
    findings.failure({ file, offset: reader.offset }, error)
  } finally {
    await reader.close()
  }
  scan.bytes += reader.size
  scan.end(reader.size)
}

/** Where the journal before this one ends; undefined when this one does not tell. */
export async function previousEndOf(scan: Scan, number: number): Promise<number | undefined> {
  const reader = await SequentialReader.open(scan.files, fileName('journal', number)).catch(() => undefined)
  try {
    return (await reader?.header())?.previousEnd
  } catch {
    // It is a problem when the journal itself is read.
    return undefined
  } finally {
    await reader?.close()
  }
}

function applyGroup(scan: Scan, journal: JournalFile, group: JournalGroup): void {
  const file = fileName('journal', journal.number)
  for (const frame of group.frames) {
    const place = { file, offset: group.offset + frame.offset }
    let changes: readonly Change[]
    try {
      changes = readChanges(new ByteReader(frame.payload))
    } catch (error) {
      scan.isPartial = true
      scan.findings.failure(place, error)
      continue
    }
    for (const change of changes) applyChange(scan, change, frame, journal, place)
  }
}

function applyChange(
  scan: Scan,
  change: Change,
  frame: GroupFrame,
  journal: JournalFile,
  place: Place,
): void {
  const { state, findings, isPartial } = scan
  const id = 'log' in change ? state.logsByNumber.get(change.log)?.id : undefined
  if (change.kind === 'append') checkData(scan, change, place, id)
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
    // What it rests on may be lost.
    if (!isPartial) findings.failure(place, error, id)
    scan.isPartial = true
  }
  if (change.kind === 'put') scan.setPlace(change, place)
  if (change.kind === 'append' || change.kind === 'create-log') scan.logPlaces.set(change.log, place)
}

function checkData(
  scan: Scan,
  { log, block, data }: Extract<Change, { kind: 'append' }>,
  place: Place,
  id: string | undefined,
): void {
  const stored: StoredBlock = { ...block, data }
  try {
    checkFormat(scan, log, checkBlock(stored))
  } catch (error) {
    scan.findings.failure(place, error, id)
  }
}
