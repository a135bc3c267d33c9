import type { Run } from './run.ts'

export interface SegmentFacts {
  readonly number: number
  readonly salt: number
  /** Up to its end: behind that of an adopted journal there may be more. */
  readonly bytes: number
  /** Of the journal that was adopted: each chunk is the frame of an append there, a run of its own. 0 when the file was made to be a segment. */
  readonly journal: number
}

/** A file of runs that does not change any more, and how much of it is wanted. */
export class Segment implements SegmentFacts {
  readonly number: number
  readonly salt: number
  readonly bytes: number
  readonly journal: number
  runs = 0
  /** What is wanted takes about so many bytes of the file. */
  liveBytes = 0
  smallRuns = 0
  /** Of the small runs. */
  smallBytes = 0
  /** Found when it was merged. It stays as it is from then on, for a merge with it would keep others from being merged as well. */
  isUnreadable = false

  constructor({ number, salt, bytes, journal }: SegmentFacts) {
    this.number = number
    this.salt = salt
    this.bytes = bytes
    this.journal = journal
  }

  get isAdopted(): boolean {
    return this.journal > 0
  }

  add(run: Run): void {
    this.runs++
    this.liveBytes += run.liveBytes
    if (run.isLarge) return
    this.smallRuns++
    this.smallBytes += run.bytes
  }

  remove(run: Run): void {
    this.runs--
    this.liveBytes -= run.liveBytes
    if (run.isLarge) return
    this.smallRuns--
    this.smallBytes -= run.bytes
  }
}
