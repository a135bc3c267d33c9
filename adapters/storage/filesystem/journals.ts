import type { StorageFailure } from '../../../src/storage/errors.ts'
import { failureOf } from './failures.ts'
import {
  encodeHeader,
  FILE_HEADER_BYTES,
  type FileHeader,
  fileName,
  newHeader,
  temporaryName,
} from './file-header.ts'
import type { File, Files } from './files.ts'
import type { JournalFile } from './log.ts'

/** A journal that is not written any more. */
export interface EndedJournal extends JournalFile {
  readonly end: number
}

/** Where the next group goes. */
export interface WritableJournal {
  readonly file: JournalFile
  readonly end: number
  /** Of the group. */
  readonly sequence: number
}

interface OpenJournal {
  readonly file: JournalFile
  readonly handle: File
  /** Everything before it is durable. */
  end: number
  sequence: number
  /** What lies behind the end is unknown, or not believed: nothing may be written until another journal ends this one. */
  isBroken: boolean
}

/** What a new journal begins with. */
interface FirstGroup {
  /** From {@link Journals.nextHeader}, without a journal made since. */
  readonly header: FileHeader
  readonly group: Uint8Array
}

/** The journals that no checkpoint covers, and the writing of the last. */
export class Journals {
  readonly #files: Files
  readonly #unsynced: boolean
  readonly #ended = new Map<number, EndedJournal>()
  #current: OpenJournal | undefined
  #nextNumber: number
  /** Why nothing is written any more: groups that were written without syncing are perhaps lost. */
  #lost: StorageFailure | undefined

  constructor(files: Files, unsynced: boolean, ended: readonly EndedJournal[], nextNumber: number) {
    this.#files = files
    this.#unsynced = unsynced
    for (const journal of ended) this.#ended.set(journal.number, journal)
    this.#nextNumber = nextNumber
  }

  /** Those that will not change any more, ascending. */
  get ended(): readonly EndedJournal[] {
    return [...this.#ended.values()]
  }

  /** Whether this opening has written. */
  get isWritten(): boolean {
    return this.#current !== undefined
  }

  get bytes(): number {
    let bytes = this.#current?.end ?? 0
    for (const { end } of this.#ended.values()) bytes += end
    return bytes
  }

  /** The journal that the next group goes to, made when there is none that can be written. */
  async ready(): Promise<WritableJournal> {
    if (this.#lost !== undefined) throw this.#lost
    if (this.#current === undefined || this.#current.isBroken) await this.begin()
    const { file, end, sequence } = this.#current!
    return { file, end, sequence: sequence + 1 }
  }

  /** Where the last journal begins that was made: what is before it does not change any more. */
  get currentNumber(): number {
    return this.#nextNumber - 1
  }

  /** Of the journal that is made next. */
  nextHeader(): FileHeader {
    const previousEnd = this.#current?.end ?? this.#ended.get(this.#nextNumber - 1)?.end ?? 0
    return newHeader('journal', this.#nextNumber, { previousEnd, unsynced: this.#unsynced })
  }

  /** Makes the next journal, which ends the one before. Resolves when it is durable with what it begins with. */
  async begin(first?: FirstGroup): Promise<void> {
    const before = this.#current
    try {
      // The next says where it ends, so all of it must be there when the next is.
      await this.settle()
      const header = first?.header ?? this.nextHeader()
      const made = await this.#create(header, first?.group)
      this.#nextNumber++
      const file = { number: header.number, salt: header.salt }
      this.#current = { file, ...made, sequence: first === undefined ? 0 : 1, isBroken: false }
    } catch (error) {
      throw failureOf(error, true)
    }
    if (before === undefined) return
    this.#ended.set(before.file.number, { ...before.file, end: before.end })
    // All that it holds is durable, or given up.
    await before.handle.close().catch(() => {})
  }

  /** Writes a group for which {@link ready} was asked. When it rejects, nothing of it will turn up, unless the failure says so. */
  async write(group: Uint8Array): Promise<void> {
    const journal = this.#current!
    let isWritten = false
    try {
      await journal.handle.write(group, journal.end)
      isWritten = true
      if (!this.#unsynced) await journal.handle.datasync()
      journal.end += group.length
      journal.sequence++
    } catch (error) {
      throw failureOf(error, await this.#takeBack(journal, isWritten))
    }
  }

  /**
   * Makes durable what was written without syncing: what makes a file unwanted must outlive the file. When that fails once, it does for ever: a
   * later sync would succeed without what the system has given up.
   */
  async settle(): Promise<void> {
    if (this.#lost !== undefined) throw this.#lost
    if (!this.#unsynced) return
    try {
      await this.#current?.handle.datasync()
    } catch (error) {
      this.#lost = failureOf(error, true)
      throw this.#lost
    }
  }

  /** Forgets the journals that a checkpoint covers, and returns their numbers. */
  forget(before: number): number[] {
    const covered = [...this.#ended.keys()].filter((number) => number < before)
    for (const number of covered) this.#ended.delete(number)
    return covered
  }

  async close(): Promise<void> {
    await this.#current?.handle.close()
    this.#current = undefined
  }

  /** Resolves to whether what failed can certainly not turn up. */
  async #takeBack(journal: OpenJournal, isWritten: boolean): Promise<boolean> {
    if (!isWritten && (await cutBack(journal, this.#unsynced))) return true
    journal.isBroken = true
    try {
      await this.begin()
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
      // From here on the next opening may find it, and then takes the one before for ended.
      if (this.#current !== undefined) this.#current.isBroken = true
      await this.#files.rename(temporaryName(name), name)
      await this.#files.syncDirectory()
    } catch (error) {
      await handle.close().catch(() => {})
      throw error
    }
    return { handle, end: FILE_HEADER_BYTES + (group?.length ?? 0) }
  }
}

/** After a write that failed. A sync that fails after it makes the file one that cannot be believed. */
async function cutBack(journal: OpenJournal, unsynced: boolean): Promise<boolean> {
  try {
    await journal.handle.truncate(journal.end)
    if (!unsynced) await journal.handle.datasync()
    return true
  } catch {
    return false
  }
}
