import type { Clock } from '../../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure, mapFileErrors } from '../files/errors.ts'
import { fileName } from '../files/file-header.ts'
import type { Files } from '../files/files.ts'

/** How often a roll is tried while appends are refused, in milliseconds: it may read a whole checkpoint. */
const RETRY_MS = 60_000

/** The rolls that failed since one succeeded. */
export class RollFailures {
  readonly #clock: Clock | undefined
  #last: StorageFailure | undefined
  #failedAt = 0
  /** Whether a call was refused since. */
  #hasRefused = false
  /** The size of the journals at which a roll is tried again. */
  #retryBytes = 0

  /** @param clock Without one, a roll is tried again for each call that is refused. */
  constructor(clock: Clock | undefined) {
    this.#clock = clock
  }

  add(error: unknown, retryBytes: number): void {
    this.#last = fileFailure(error, true)
    this.#failedAt = this.#clock?.now() ?? 0
    this.#hasRefused = false
    this.#retryBytes = retryBytes
  }

  clear(): void {
    this.#last = undefined
    this.#retryBytes = 0
  }

  /** Whether a roll may be tried, for journals of this size. */
  isRetryDue(journalBytes: number, isOverLimit: boolean): boolean {
    if (journalBytes >= this.#retryBytes) return true
    if (!isOverLimit || !this.#hasRefused) return false
    const waitedMs = this.#clock === undefined ? RETRY_MS : this.#clock.now() - this.#failedAt
    return waitedMs < 0 || waitedMs >= RETRY_MS
  }

  /** Returns the failure of a call that is refused because journals of this size are beyond the limit. */
  refusal(journalBytes: number): StorageFailure | undefined {
    if (this.#last === undefined) return undefined
    this.#hasRefused = true
    const { kind, message } = this.#last
    const reason = `journals have grown to ${journalBytes} bytes, because rolling them fails: ${message}`
    return new StorageFailure(kind, reason, { nothingWritten: true, cause: this.#last })
  }
}

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
