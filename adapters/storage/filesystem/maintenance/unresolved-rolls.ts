import { mapFileErrors } from '../files/errors.ts'
import { fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'

interface UnresolvedRoll {
  /** Number of the checkpoint. */
  readonly checkpoint: number
  /** Numbers of the new segments. */
  readonly segments: readonly number[]
  /** Whether the checkpoint was renamed: its removal is certain only once the directory is synced. */
  wasNamed: boolean
}

/**
 * Failed rolls whose checkpoint the next opening may still find. Such an opening would count the rolled
 * blocks as runs of the new segments, while the state in memory counts them as blocks in journals. A freed
 * range would be recorded in units that the opening does not know. So nothing may be freed while there are
 * unresolved rolls.
 */
export class UnresolvedRolls {
  readonly #files: Files
  #rolls: UnresolvedRoll[] = []

  constructor(files: Files) {
    this.#files = files
  }

  add(checkpoint: number, segments: readonly number[]): void {
    this.#rolls.push({ checkpoint, segments, wasNamed: false })
  }

  /** Removes their checkpoints, so that no opening can find them. No roll and no reclaim may be running. */
  async rollBack(): Promise<void> {
    if (this.#rolls.length === 0) return
    for (const roll of this.#rolls) {
      if (await mapFileErrors(this.#remove(fileName('checkpoint', roll.checkpoint)))) roll.wasNamed = true
    }
    if (this.#rolls.some(({ wasNamed }) => wasNamed)) await mapFileErrors(this.#files.syncDirectory())
    await this.#removeSegments()
  }

  /** A later checkpoint is durable, so no opening reads theirs. */
  supersede(): Promise<void> {
    return this.#removeSegments()
  }

  async #removeSegments(): Promise<void> {
    for (const segment of this.#rolls.splice(0).flatMap(({ segments }) => segments)) {
      // Nothing refers to the segment. If it stays, the next opening removes it.
      await this.#remove(fileName('segment', segment)).catch(() => {})
    }
  }

  /** Resolves to whether the file existed. */
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
