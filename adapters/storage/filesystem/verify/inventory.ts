import { mapFileErrors } from '../files/errors.ts'
import { type FileKind, fileName, isTemporaryName, parseFileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'
import type { Findings } from './report.ts'

/** The files of a directory, by what an opening does with them. */
export interface Inventory {
  readonly checkpoint: number | undefined
  /** Number of the first journal that the checkpoint does not cover. */
  readonly firstJournal: number
  /** Number of each journal from `firstJournal` on, ascending. */
  readonly journals: readonly number[]
  /** Ascending. */
  readonly segments: readonly number[]
  /** Bytes of each file to read, by name. Absent for files that cannot be opened. */
  readonly sizes: ReadonlyMap<string, number>
}

/** Reports missing files and unused ones. */
export async function takeInventory(
  files: Files,
  names: readonly string[],
  findings: Findings,
): Promise<Inventory> {
  const numbers = (kind: FileKind): number[] =>
    names
      .flatMap((name) => parseFileName(name) ?? [])
      .filter((file) => file.kind === kind)
      .map(({ number }) => number)
      .sort((a, b) => a - b)
  const checkpoint = numbers('checkpoint').at(-1)
  const segments = numbers('segment')
  const firstJournal = checkpoint ?? 1
  const journals = numbers('journal').filter((number) => number >= firstJournal)
  for (const name of names) {
    const file = parseFileName(name)
    if (isTemporaryName(name)) findings.note(name, 'unfinished file')
    else if (file === undefined) continue
    else if (fileName(file.kind, file.number) !== name) {
      findings.problem({ file: name, offset: 0 }, 'not a valid file name of the storage')
    } else if (file.kind !== 'segment' && file.number < firstJournal) {
      findings.note(name, 'unused: a later checkpoint covers it')
    }
  }
  reportMissing(journals, firstJournal, checkpoint !== undefined || segments.length > 0, findings)
  const read = [
    ...(checkpoint === undefined ? [] : [fileName('checkpoint', checkpoint)]),
    ...journals.map((number) => fileName('journal', number)),
    ...segments.map((number) => fileName('segment', number)),
  ]
  return { checkpoint, firstJournal, journals, segments, sizes: await sizesOf(files, read) }
}

/** One problem per gap: a wrong name may leave a gap of millions. */
function reportMissing(
  journals: readonly number[],
  first: number,
  mustExist: boolean,
  findings: Findings,
): void {
  let next = first
  for (const number of journals) {
    if (number > next)
      findings.problem({ file: fileName('journal', next), offset: 0 }, missing(number - next))
    next = number + 1
  }
  if (mustExist && journals.length === 0) {
    findings.problem({ file: fileName('journal', first), offset: 0 }, missing(1))
  }
}

function missing(count: number): string {
  return count === 1 ? 'the file is missing' : `the file is missing, as are the next ${count - 1}`
}

async function sizesOf(files: Files, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>()
  for (const name of names) {
    const file = await files.open(name, 'read').catch(() => undefined)
    if (file === undefined) continue
    try {
      sizes.set(name, await mapFileErrors(file.size()))
    } finally {
      await file.close()
    }
  }
  return sizes
}
