import { StorageFailure } from '../../../../src/storage/errors.ts'

/** Damage: something differs from what the storage wrote. */
export interface VerifyProblem {
  /** File name within the directory. */
  readonly file: string
  /** Bytes from the start of the file. */
  readonly offset: number
  /** What is wrong. */
  readonly problem: string
  /** Id of the affected log, if any. */
  readonly log?: string | undefined
  /** The stream of that log, if the documents tell. */
  readonly stream?: { readonly basin: string; readonly name: string } | undefined
}

/** A remark that is not damage, such as leftovers of a crash or unused files. */
export interface VerifyNote {
  /** File name within the directory. */
  readonly file: string
  /** Bytes from the start of the file; absent if the note is about the whole file. */
  readonly offset?: number | undefined
  /** What was found. */
  readonly note: string
  /** Id of the log that the note is about, if any. */
  readonly log?: string | undefined
}

/** The result of {@link verifyDirectory}. */
export interface VerifyReport {
  /** Number of files read; 0 if nothing was ever written. */
  readonly files: number
  /** Bytes read. */
  readonly bytes: number
  /**
   * The format versions of the files, ascending. More than one after an upgrade: old files keep theirs until
   * they are freed or compacted.
   */
  readonly formatVersions: readonly number[]
  /** Number of documents in the directory, as far as it could be read. */
  readonly documents: number
  /** Number of logs in the directory, as far as it could be read. */
  readonly logs: number
  /** Number of blocks that are not freed. */
  readonly blocks: number
  /** Number of records in these blocks. */
  readonly records: number
  /** The first 1,000 problems, in the order found. Empty if the directory is sound. */
  readonly problems: readonly VerifyProblem[]
  /** Number of all problems. */
  readonly problemCount: number
  /** The first 1,000 notes. */
  readonly notes: readonly VerifyNote[]
  /** Number of all notes. */
  readonly noteCount: number
}

/** The report of a directory without files. */
export const EMPTY_REPORT: VerifyReport = {
  files: 0,
  bytes: 0,
  formatVersions: [],
  documents: 0,
  logs: 0,
  blocks: 0,
  records: 0,
  problems: [],
  problemCount: 0,
  notes: [],
  noteCount: 0,
}

/** How far a verification is. */
export interface VerifyProgress {
  /** Bytes checked so far. */
  readonly done: number
  /** Bytes to check. */
  readonly total: number
  /** Name of the file that is being read. */
  readonly file: string
}

/** A damaged directory may have a problem in every frame. */
const KEPT_MAX = 1000

/** A position in a file. */
export interface Place {
  readonly file: string
  readonly offset: number
}

/** Counts all problems and notes, and keeps the first ones. */
export class Findings {
  readonly problems: VerifyProblem[] = []
  readonly notes: VerifyNote[] = []
  problemCount = 0
  noteCount = 0

  problem({ file, offset }: Place, problem: string, log?: string): void {
    this.problemCount++
    if (this.problems.length >= KEPT_MAX) return
    this.problems.push({ file, offset, problem, ...(log !== undefined && { log }) })
  }

  note(
    file: string,
    note: string,
    about: { readonly offset?: number | undefined; readonly log?: string | undefined } = {},
  ): void {
    this.noteCount++
    if (this.notes.length < KEPT_MAX) this.notes.push({ file, ...about, note })
  }

  /** Records an error about this place. Rethrows errors that are neither damage nor storage failures. */
  failure(place: Place, error: unknown, log?: string): void {
    if (error instanceof RangeError) this.problem(place, error.message, log)
    else if (StorageFailure.is(error)) this.problem(place, withoutPlace(error, place), log)
    else throw error
  }
}

/** Removes file and offset from the message, because a problem has them as members. */
function withoutPlace({ kind, message }: StorageFailure, { file }: Place): string {
  if (kind !== 'corrupt') return `cannot be read: ${message}`
  const prefix = `${file} is damaged at offset `
  return message.startsWith(prefix) ? message.slice(message.indexOf(': ') + 2) : message
}
