import type { Scratch } from './scratch.ts'

/** How much is measured. */
export class Settings {
  readonly isQuick: boolean
  readonly rounds: number
  readonly scratch: Scratch

  constructor(isQuick: boolean, rounds: number, scratch: Scratch) {
    this.isQuick = isQuick
    this.rounds = rounds
    this.scratch = scratch
  }

  /** The length of a turn, where the work does not determine it. */
  get turnMs(): number {
    return this.isQuick ? 300 : 500
  }

  /** The CPU time of all turns before the first one that counts. */
  get warmUpMs(): number {
    return this.isQuick ? 700 : 1_000
  }

  /** A size that is reduced if the run is quick. */
  sized(size: number): number {
    return this.isQuick ? Math.ceil(size / 20) : size
  }
}
