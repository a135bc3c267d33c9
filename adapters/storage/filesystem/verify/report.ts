/** Something that is not as the storage left it. */
export interface VerifyProblem {
  /** Name of the file in the directory. */
  readonly file: string
  /** In bytes from the beginning of the file. */
  readonly offset: number
  readonly problem: string
  /** Id of the log that it is about, when it is about one. */
  readonly log?: string
  /** The stream that has this log, as far as the documents tell. */
  readonly stream?: { readonly basin: string; readonly name: string }
}

/** Something that is worth knowing, and no damage: what a crash left, what is not wanted any more. */
export interface VerifyNote {
  readonly file: string
  /** Absent when it is about the whole file. */
  readonly offset?: number
  readonly note: string
  readonly log?: string
}

/** What {@link verifyDirectory} found. */
export interface VerifyReport {
  /** How many files were read: 0 when nothing was ever written there. */
  readonly files: number
  /** What was read, in bytes. */
  readonly bytes: number
  /** What the directory keeps, as far as it could be read. */
  readonly documents: number
  readonly logs: number
  /** That are not freed. */
  readonly blocks: number
  /** In these blocks. */
  readonly records: number
  /** The first 1,000, in the order in which they were found. The directory is sound when there is none. */
  readonly problems: readonly VerifyProblem[]
  /** Of all, also those beyond the first 1,000. */
  readonly problemCount: number
  /** The first 1,000. */
  readonly notes: readonly VerifyNote[]
  readonly noteCount: number
}

/** Of a directory without files. */
export const EMPTY_REPORT: VerifyReport = {
  files: 0,
  bytes: 0,
  documents: 0,
  logs: 0,
  blocks: 0,
  records: 0,
  problems: [],
  problemCount: 0,
  notes: [],
  noteCount: 0,
}

export interface VerifyProgress {
  /** Bytes that were seen to. */
  readonly done: number
  /** Bytes that there are to see to. */
  readonly total: number
  /** Name of the file that is being read. */
  readonly file: string
}
