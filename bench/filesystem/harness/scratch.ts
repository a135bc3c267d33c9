import { mkdir, mkdtemp, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'

/** `statfs` types of file systems that are in memory: tmpfs, ramfs. */
const IN_MEMORY: readonly number[] = [0x0102_1994, 0x8584_58f6]

/** Fresh directories on one disk, removed at the end. */
export class Scratch {
  readonly #root: string
  #made = 0

  private constructor(root: string) {
    this.#root = root
  }

  /** Rejects when `parent` is in memory, where syncing costs nothing. */
  static async in(parent: string): Promise<Scratch> {
    const { type } = await statfs(parent)
    if (IN_MEMORY.includes(type)) {
      throw new Error(`${parent} is in memory: choose a directory on a disk with --directory`)
    }
    return new Scratch(await mkdtemp(join(parent, 'headwater-bench-')))
  }

  async fresh(): Promise<string> {
    const directory = join(this.#root, String(++this.#made))
    await mkdir(directory)
    return directory
  }

  /** Gives `work` a fresh directory, which is removed after it. */
  async during<Result>(work: (directory: string) => Promise<Result>): Promise<Result> {
    const directory = await this.fresh()
    try {
      return await work(directory)
    } finally {
      await rm(directory, { recursive: true })
    }
  }

  async remove(): Promise<void> {
    await rm(this.#root, { recursive: true, force: true })
  }
}
