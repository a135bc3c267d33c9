import { reading } from '../failures.ts'
import { type FileKind, fileName, isTemporaryName, parseFileName } from '../file-header.ts'
import type { Files } from '../files.ts'
import type { Findings } from './findings.ts'

/** Which files there are, and what an opening would do with them. */
export interface Inventory {
  readonly checkpoint: number | undefined
  /** Number of the journal that the state begins with. */
  readonly firstJournal: number
  /** From that one on, ascending. */
  readonly journals: readonly number[]
  /** Ascending. */
  readonly segments: readonly number[]
  /** Of all that is to be read, by name. What cannot be opened has none. */
  readonly sizes: ReadonlyMap<string, number>
}

/** Tells of what is missing, and of what is there and not wanted. */
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
    if (isTemporaryName(name)) findings.note(name, 'a file that was not finished')
    else if (file === undefined) continue
    else if (fileName(file.kind, file.number) !== name) {
      findings.problem({ file: name, offset: 0 }, 'the storage gives no such name')
    } else if (file.kind !== 'segment' && file.number < firstJournal) {
      findings.note(name, 'it is not wanted: a later checkpoint covers it')
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

/** One problem for each gap: a wrong name may leave one of millions. */
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
  return count === 1 ? 'it is missing' : `it is missing, and so are the next ${count - 1}`
}

async function sizesOf(files: Files, names: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>()
  for (const name of names) {
    const file = await files.open(name, 'read').catch(() => undefined)
    if (file === undefined) continue
    try {
      sizes.set(name, await reading(file.size()))
    } finally {
      await file.close()
    }
  }
  return sizes
}
