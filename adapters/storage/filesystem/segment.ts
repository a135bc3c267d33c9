import type { Run } from './run.ts'

export interface SegmentFacts {
  readonly number: number
  readonly salt: number
  readonly bytes: number
}

/** An immutable file of runs, and how much of it is wanted. */
export class Segment implements SegmentFacts {
  readonly number: number
  readonly salt: number
  readonly bytes: number
  runs = 0
  /** What is wanted takes about so many bytes of the file. */
  liveBytes = 0
  smallRuns = 0
  /** Of the small runs. */
  smallBytes = 0

  constructor({ number, salt, bytes }: SegmentFacts) {
    this.number = number
    this.salt = salt
    this.bytes = bytes
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
