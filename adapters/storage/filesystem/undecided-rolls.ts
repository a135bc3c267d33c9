import { reading } from './failures.ts'
import { fileName } from './file-header.ts'
import type { Files } from './files.ts'

interface UndecidedRoll {
  /** Number of the checkpoint. */
  readonly checkpoint: number
  /** Numbers of the segments that it made. */
  readonly segments: readonly number[]
  /** Whether the checkpoint had its name: then it is gone for certain only when the directory was synced without it. */
  wasNamed: boolean
}

/**
 * Rolls that failed, and whose checkpoint the next opening may find nevertheless. It counts the rolled blocks by the runs of the
 * segments, the state in memory by the journals: what was freed would be noted in a measure that such an opening does not know. So
 * while there are any, nothing may be freed.
 */
export class UndecidedRolls {
  readonly #files: Files
  #rolls: UndecidedRoll[] = []

  constructor(files: Files) {
    this.#files = files
  }

  add(checkpoint: number, segments: readonly number[]): void {
    this.#rolls.push({ checkpoint, segments, wasNamed: false })
  }

  /** Resolves when no opening can find their checkpoints. To be called when neither rolling nor freeing is under way. */
  async takeBack(): Promise<void> {
    if (this.#rolls.length === 0) return
    for (const roll of this.#rolls) {
      if (await reading(this.#remove(fileName('checkpoint', roll.checkpoint)))) roll.wasNamed = true
    }
    if (this.#rolls.some(({ wasNamed }) => wasNamed)) await reading(this.#files.syncDirectory())
    await this.#removeSegments()
  }

  /** A later checkpoint is durable, with its name: no opening reads theirs. */
  supersede(): Promise<void> {
    return this.#removeSegments()
  }

  async #removeSegments(): Promise<void> {
    for (const segment of this.#rolls.splice(0).flatMap(({ segments }) => segments)) {
      // Nothing refers to it; what stays is removed at the next opening.
      await this.#remove(fileName('segment', segment)).catch(() => {})
    }
  }

  /** Resolves to whether there was such a file. */
  async #remove(name: string): Promise<boolean> {
    try {
      await this.#files.unlink(name)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
      throw error
    }
  }
}
