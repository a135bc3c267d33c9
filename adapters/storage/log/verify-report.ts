import { StorageFailure } from '../../../src/storage/errors.ts'

/** Damage: something differs from what the storage wrote. */
export interface VerifyProblem {
  /** File name within the directory. */
  readonly file: string
  /** Bytes from the start of the file. */
  readonly offset: number
  /** The description of the problem. */
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
  /** The description of what was found. */
  readonly note: string
  /** Id of the log that the note is about, if any. */
  readonly log?: string | undefined
}

/**
 * The result of {@link verifyDirectory}.
 *
 * ```ts
 * const report = await verifyDirectory('./data')
 * const { files, bytes, formatVersions, documents, logs, blocks, records } = report
 * console.log(`format ${formatVersions}: ${files} files, ${bytes} bytes, ${records} records`)
 * console.log(documents, logs, blocks, report.problemCount, report.noteCount)
 * for (const { file, offset, problem, log, stream } of report.problems) {
 *   console.log(file, offset, problem, stream?.name ?? log)
 * }
 * for (const { file, offset, note, log } of report.notes) console.log(file, offset, note, log)
 * ```
 */
export interface VerifyReport {
  /** Number of files read; 0 if nothing was ever written. */
  readonly files: number
  /** Bytes read. */
  readonly bytes: number
  /** The format versions of the files, ascending. */
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

/** The progress of a verification. */
export interface DirectoryProgress {
  /** Bytes processed so far. */
  readonly done: number
  /** Bytes to process. */
  readonly total: number
  /** Name of the file that is being read. */
  readonly file: string
}

/** A damaged directory may have a problem for every stream. */
const KEPT_MAX = 1000

/** Counts all problems and notes, and keeps the first ones. */
export class Findings {
  readonly #problems: VerifyProblem[] = []
  readonly #notes: VerifyNote[] = []
  /** The streams of logs. */
  readonly streams = new Map<string, { readonly basin: string; readonly name: string }>()
  #problemCount = 0
  #noteCount = 0

  problem(file: string, offset: number, problem: string, log?: string): void {
    this.#problemCount++
    if (this.#problems.length >= KEPT_MAX) return
    const stream = log === undefined ? undefined : this.streams.get(log)
    this.#problems.push({
      file,
      offset,
      problem,
      ...(log !== undefined && { log }),
      ...(stream && { stream }),
    })
  }

  note(file: string, note: string, about: Pick<VerifyNote, 'offset' | 'log'> = {}): void {
    this.#noteCount++
    if (this.#notes.length < KEPT_MAX) this.#notes.push({ file, ...about, note })
  }

  /** Records an error as a problem of the place that it names, or else of this file. */
  failure(error: unknown, file: string, log?: string): void {
    if (!(error instanceof RangeError || StorageFailure.is(error))) throw error
    const isDamage = error instanceof RangeError
    const { message } = error as Error
    const place = /^(\S+) is damaged at offset (\d+): (.*)$/s.exec(message)
    if (place !== null) this.problem(place[1]!, Number(place[2]), place[3]!, log)
    else if (isDamage) this.problem(file, 0, message, log)
    else this.problem(file, 0, `cannot be read: ${message}`, log)
  }

  get report(): Pick<VerifyReport, 'problems' | 'problemCount' | 'notes' | 'noteCount'> {
    const [problemCount, noteCount] = [this.#problemCount, this.#noteCount]
    return { problems: this.#problems, problemCount, notes: this.#notes, noteCount }
  }
}
