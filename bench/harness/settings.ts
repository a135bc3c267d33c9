import { mkdirSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

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

/** The `statfs` types of file systems in memory: tmpfs and ramfs. */
const IN_MEMORY: readonly number[] = [0x0102_1994, 0x8584_58f6]

/** New directories on one disk, removed at the end. */
export class Scratch {
  readonly #root: string
  #made = 0

  /** Throws if `parent` is in memory, where syncing costs nothing. */
  constructor(parent: string) {
    if (IN_MEMORY.includes(statfsSync(parent).type)) {
      throw new Error(`${parent} is in memory; choose a directory on a disk with --directory`)
    }
    this.#root = mkdtempSync(join(parent, 'headwater-bench-'))
  }

  fresh(): string {
    const directory = join(this.#root, String(++this.#made))
    mkdirSync(directory)
    return directory
  }

  /** Frees the disk for the next measurement. */
  clear(): void {
    for (let number = 1; number <= this.#made; number++) {
      rmSync(join(this.#root, String(number)), { recursive: true, force: true })
    }
  }

  remove(): void {
    rmSync(this.#root, { recursive: true, force: true })
  }
}
