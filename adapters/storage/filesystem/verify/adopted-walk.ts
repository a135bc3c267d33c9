import type { AppendFrame } from '../append-frame.ts'
import { ByteReader } from '../bytes.ts'
import { readChanges } from '../change-codec.ts'
import type { FileIdentity } from '../file-header.ts'
import type { JournalGroup } from '../journal-reader.ts'
import { SequentialReader } from '../sequential-reader.ts'
import { checkUnplaced } from './block-check.ts'
import { walkGroups } from './group-walk.ts'
import type { Scan } from './scan.ts'
import type { SegmentFile } from './segment-file.ts'

const LETTER_OFFSET = 4
const NUMBER_OFFSET = 8
const LETTER_OF_JOURNALS = 'J'.charCodeAt(0)

/** What a segment calls itself that is an adopted journal; undefined when it is none. */
export function journalOf(header: Buffer): FileIdentity | undefined {
  if (header.length < NUMBER_OFFSET + 8 || header[LETTER_OFFSET] !== LETTER_OF_JOURNALS) return undefined
  return { kind: 'journal', number: Number(header.readBigUInt64LE(NUMBER_OFFSET)) }
}

/** An append of an adopted journal, and where its frame is. */
interface PlacedAppend extends AppendFrame {
  readonly offset: number
}

/** The appends that are whole. */
export async function* appendsOf(
  scan: Scan,
  { name }: SegmentFile,
  journal: FileIdentity,
): AsyncGenerator<PlacedAppend, void, undefined> {
  const reader = await SequentialReader.open(scan.files, name)
  try {
    const header = await reader.header(journal)
    for await (const step of walkGroups(reader, header, undefined)) {
      scan.at(reader.offset)
      if (step.kind !== 'group') continue
      for (const { payload, offset } of step.group.frames) {
        for (const change of readChanges(new ByteReader(payload))) {
          if (change.kind !== 'append') continue
          const block = { ...change.block, data: change.data }
          yield { log: change.log, block, offset: step.group.offset + offset }
        }
      }
    }
  } finally {
    await reader.close()
  }
}

/** Reads an adopted journal by nothing but its own account: every block that was written, small ones included, which lie elsewhere. Where it ends is lost. */
export async function walkAdopted(scan: Scan, { name }: SegmentFile, journal: FileIdentity): Promise<void> {
  const reader = await SequentialReader.open(scan.files, name)
  try {
    const header = await reader.header(journal)
    for await (const step of walkGroups(reader, header, undefined)) {
      scan.at(reader.offset)
      if (step.kind === 'group') checkGroup(scan, name, step.group)
      else if (step.kind === 'damage')
        scan.findings.problem({ file: name, offset: step.offset }, step.problem)
      else scan.findings.note(name, `${reader.size - step.offset} bytes that are not whole`, step)
    }
  } finally {
    await reader.close()
  }
}

function checkGroup(scan: Scan, file: string, group: JournalGroup): void {
  for (const { payload, offset } of group.frames) {
    const place = { file, offset: group.offset + offset }
    try {
      for (const change of readChanges(new ByteReader(payload))) {
        if (change.kind === 'append') checkUnplaced(scan, { ...change.block, data: change.data }, place)
      }
    } catch (error) {
      scan.findings.failure(place, error)
    }
  }
}
