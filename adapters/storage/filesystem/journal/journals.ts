import { StorageFailure } from '../../../../src/storage/errors.ts'
import { fileFailure } from '../files/errors.ts'
import {
  encodeHeader,
  encodeSyncedEnd,
  FILE_HEADER_BYTES,
  type FileHeader,
  fileName,
  newHeader,
  SYNCED_END_OFFSET,
  temporaryName,
} from '../files/file-header.ts'
import type { File, Files } from '../files/files.ts'
import type { Reserve } from '../files/reserve.ts'
import type { JournalFile } from '../state/log.ts'

/** A journal that no longer changes. */
export interface EndedJournal extends JournalFile {
  readonly end: number
}

/** The journal that the next group is written to. */
export interface WritableJournal {
  readonly file: JournalFile
  readonly end: number
  /** The sequence number of the next group. */
  readonly sequence: number
}

interface OpenJournal {
  readonly file: JournalFile
  readonly handle: File
  /** Everything before it is durable. */
  end: number
  sequence: number
  /** The synced end in its header. */
  recordedEnd: number
  /**
   * The content after `end` is unknown: the journal must not be written to again, and another one ends it.
   */
  isBroken: boolean
}

/** The initial content of a journal. */
interface FirstGroup {
  /** The header from {@link Journals.nextHeader}, with no journal created since. */
  readonly header: FileHeader
  readonly group: Uint8Array
}

/**
 * The interval of looking up the name of the journal, in milliseconds. A file that was removed or replaced
 * has no name at all, which is noticed after every sync; one that was moved has another. Without syncs,
 * looking after every group would make appends a tenth slower.
 */
const NAME_CHECK_INTERVAL_MS = 10
/** How many groups apart the synced end is recorded. With every group, appends would take a third longer. */
const SYNCED_END_EVERY = 16

/** The journals that no checkpoint covers. Writes the last of them. */
export class Journals {
  readonly #files: Files
  readonly #reserve: Reserve
  #unsynced: boolean
  readonly #ended = new Map<number, EndedJournal>()
  #current: OpenJournal | undefined
  #nextNumber: number
  #failure: StorageFailure | undefined
  #isClosing = false
  /** The time at which the name of the journal was last looked up. */
  #nameCheckedAt = 0

  constructor(
    files: Files,
    reserve: Reserve,
    unsynced: boolean,
    ended: readonly EndedJournal[],
    nextNumber: number,
  ) {
    this.#files = files
    this.#reserve = reserve
    this.#unsynced = unsynced
    for (const journal of ended) this.#ended.set(journal.number, journal)
    this.#nextNumber = nextNumber
  }

  /** Ended journals, ascending. */
  get ended(): readonly EndedJournal[] {
    return [...this.#ended.values()]
  }

  /** Whether this opening has written anything. */
  get isWritten(): boolean {
    return this.#current !== undefined
  }

  /** Why nothing is written any more until the storage is opened again. */
  get failure(): StorageFailure | undefined {
    return this.#failure
  }

  get bytes(): number {
    let bytes = this.#current?.end ?? 0
    for (const { end } of this.#ended.values()) bytes += end
    return bytes
  }

  /** Returns where the next group goes. Creates a journal if there is none that can be written to. */
  async ready(): Promise<WritableJournal> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#current === undefined || this.#current.isBroken) await this.rotate()
    const { file, end, sequence } = this.#current!
    return { file, end, sequence: sequence + 1 }
  }

  /** Whether the newest journal has groups, or cannot be written to, so that a roll needs another one. */
  get hasGroups(): boolean {
    const journal = this.#current
    return journal === undefined || journal.isBroken || journal.end > FILE_HEADER_BYTES
  }

  /** Number of the newest journal: earlier ones no longer change. */
  get currentNumber(): number {
    return this.#nextNumber - 1
  }

  /** The header of the next journal. */
  nextHeader(): FileHeader {
    const previousEnd = this.#current?.end ?? this.#ended.get(this.#nextNumber - 1)?.end ?? 0
    return newHeader('journal', this.#nextNumber, { previousEnd, unsynced: this.#unsynced })
  }

  /**
   * Creates the next journal, which ends the current one. Resolves once it is durable with its initial
   * content.
   */
  async rotate(first?: FirstGroup): Promise<void> {
    const before = this.#current
    try {
      // The next journal records the end of this one, so everything before that end must be durable first.
      await this.syncUnsynced()
      const header = first?.header ?? this.nextHeader()
      const made = await this.#create(header, first?.group)
      this.#nextNumber++
      const file = { number: header.number, salt: header.salt }
      this.#current = {
        file,
        ...made,
        sequence: first === undefined ? 0 : 1,
        recordedEnd: 0,
        isBroken: false,
      }
    } catch (error) {
      throw fileFailure(error, true)
    }
    if (before === undefined) return
    this.#ended.set(before.file.number, { ...before.file, end: before.end })
    // Everything it holds is durable or given up.
    await before.handle.close().catch(() => {})
  }

  /**
   * Writes a group after {@link ready}. After a rejection the group never appears, unless the failure says
   * otherwise.
   */
  async write(group: Uint8Array): Promise<void> {
    const journal = this.#current!
    const isDue = this.#isSyncedEndDue(journal)
    let isWritten = false
    try {
      // In the same sync. What it says is true even if the group is lost.
      if (isDue) await writeSyncedEnd(journal)
      await journal.handle.write(group, journal.end)
      isWritten = true
      if (!this.#unsynced) await journal.handle.datasync()
      this.#assertLinked(journal)
      if (isDue) journal.recordedEnd = journal.end
      journal.end += group.length
      journal.sequence++
    } catch (error) {
      const isLost = this.#failure !== undefined
      // A file that was moved may come back, but no other one ends it.
      const isUndone = isLost ? truncateToEnd(journal, this.#unsynced) : this.#rollBack(journal, isWritten)
      throw fileFailure(error, await isUndone)
    }
  }

  #isSyncedEndDue({ sequence }: OpenJournal): boolean {
    return !this.#unsynced && (this.#isClosing || (sequence > 0 && sequence % SYNCED_END_EVERY === 0))
  }

  /** Whether the header does not tell of everything that was synced. */
  get isSyncedEndBehind(): boolean {
    const journal = this.#current
    if (journal === undefined || journal.isBroken || this.#unsynced || this.#failure !== undefined)
      return false
    return journal.sequence > 0 && journal.recordedEnd < journal.end
  }

  /** Records the synced end without a group. To be called between two groups. */
  async recordSyncedEnd(): Promise<void> {
    if (!this.isSyncedEndBehind) return
    const journal = this.#current!
    try {
      await writeSyncedEnd(journal)
      await journal.handle.datasync()
      journal.recordedEnd = journal.end
    } catch (error) {
      throw fileFailure(error, await this.#rollBack(journal, true))
    }
  }

  /** Makes the next group, which is the closing one, record the synced end. */
  prepareClose(): void {
    this.#isClosing = true
  }

  /**
   * Throws if something else removed, replaced or moved the journal, alone or with its directory: what was
   * written and synced is lost with it.
   */
  assertInPlace(): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#current === undefined) return
    const { handle, file } = this.#current
    const name = fileName('journal', file.number)
    this.#nameCheckedAt = performance.now()
    if (!handle.isLinked() || !handle.isNamed(name)) throw this.fail(lostFile(name))
  }

  /**
   * Does the same as `assertInPlace`, but looks the name up only at intervals, so that it can be called after
   * every group.
   */
  #assertLinked({ handle, file }: OpenJournal): void {
    if (performance.now() - this.#nameCheckedAt > NAME_CHECK_INTERVAL_MS) this.assertInPlace()
    else if (!this.#unsynced && !handle.isLinked())
      throw this.fail(lostFile(fileName('journal', file.number)))
  }

  /** Ends all writing until the storage is opened again, and logs the reason. Returns it. */
  fail(failure: StorageFailure): StorageFailure {
    if (this.#failure === undefined) {
      console.error(`headwater: ${failure.message}. Nothing is written until the storage is opened again.`)
    }
    this.#failure ??= failure
    return this.#failure
  }

  /**
   * Syncs what was written without a sync. A change that makes a file obsolete must be durable before the
   * file is removed. A failure is permanent: a later sync would succeed without the pages that the system has
   * dropped.
   */
  async syncUnsynced(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (!this.#unsynced) return
    try {
      await this.#current?.handle.datasync()
    } catch (error) {
      throw this.fail(fileFailure(error, true))
    }
  }

  /** Makes everything written so far durable, and every later group before it is acknowledged. */
  async requireSync(): Promise<void> {
    if (!this.#unsynced) return
    await this.syncUnsynced()
    this.#unsynced = false
    if (this.#current === undefined) return
    // The header of a journal tells how it is written.
    this.#current.isBroken = true
    await this.rotate()
  }

  /** Drops the journals that a checkpoint covers. */
  drop(before: number): void {
    for (const number of this.#ended.keys()) if (number < before) this.#ended.delete(number)
  }

  async close(): Promise<void> {
    await this.#current?.handle.close()
    this.#current = undefined
  }

  /** Undoes a failed write. Resolves to whether its data can certainly not appear later. */
  async #rollBack(journal: OpenJournal, isWritten: boolean): Promise<boolean> {
    if (!isWritten && (await truncateToEnd(journal, this.#unsynced))) return true
    journal.isBroken = true
    try {
      await this.#reserve.use(() => this.rotate())
      return true
    } catch {
      return false
    }
  }

  async #create(
    header: FileHeader,
    group: Uint8Array | undefined,
  ): Promise<{ readonly handle: File; readonly end: number }> {
    const name = fileName('journal', header.number)
    const handle = await this.#files.open(temporaryName(name), 'create')
    try {
      await handle.write(encodeHeader(header), 0)
      if (group !== undefined) await handle.write(group, FILE_HEADER_BYTES)
      await handle.datasync()
      // From here on the next opening may find the new journal, and then treats this one as ended.
      if (this.#current !== undefined) this.#current.isBroken = true
      await this.#files.rename(temporaryName(name), name)
      await this.#files.syncDirectory()
    } catch (error) {
      await handle.close().catch(() => {})
      // On a full disk it would take the space that is left.
      await this.#files.unlink(temporaryName(name)).catch(() => {})
      throw error
    }
    return { handle, end: FILE_HEADER_BYTES + (group?.length ?? 0) }
  }
}

async function writeSyncedEnd({ handle, end, file }: OpenJournal): Promise<void> {
  await handle.write(encodeSyncedEnd(end, file.salt), SYNCED_END_OFFSET)
}

/** Cuts off a failed write. If the sync after it fails, the file can no longer be trusted. */
async function truncateToEnd(journal: OpenJournal, unsynced: boolean): Promise<boolean> {
  try {
    await journal.handle.truncate(journal.end)
    if (!unsynced) await journal.handle.datasync()
    return true
  } catch {
    return false
  }
}

/** The failure for a file that something else removed, moved or replaced. */
export function lostFile(name: string): StorageFailure {
  const message = `${name} was removed or replaced while it was open, or its directory was removed or moved`
  return new StorageFailure('io', message, { nothingWritten: true })
}
