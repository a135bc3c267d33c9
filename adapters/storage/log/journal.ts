import type { Durability } from '../../../src/storage/contract.ts'
import type { StorageFailure } from '../../../src/storage/errors.ts'
import { type Medium, mediumFailure } from '../media/medium.ts'
import { type Change, encodeChange } from './changes.ts'
import {
  encodeGroupHeader,
  encodeHeader,
  FrameWriter,
  fileName,
  GROUP_HEADER_BYTES,
  GROUP_UNSYNCED,
  HEADER_BYTES,
  newSalt,
} from './format.ts'
import type { Span } from './state.ts'

/** Changes that are written as one frame. */
export interface StagedFrame {
  readonly changes: readonly Change[]
  /** The data of its block. */
  readonly data?: Uint8Array | undefined
}

/** A journal whose changes the last checkpoint does not hold. */
export interface JournalFile {
  readonly number: number
  readonly salt: number
  /** The number of its first group. */
  readonly firstGroup: number
  /** Everything before it is written. */
  readonly end: number
}

/** The journals, of which the last one grows by a group at a time. */
export class Journal {
  readonly #medium: Medium
  readonly #group = new FrameWriter()
  #frames = 0
  readonly #isSynced: boolean
  /** Whether the next group is synced in any case, and written even if it is empty. */
  #syncsNext = false
  /** Whether something was written without a sync. */
  #isDirty = false
  /** Not empty once something was written. */
  #files: readonly JournalFile[]
  #nextFile: number
  #nextGroup: number
  #failure: StorageFailure | undefined

  /**
   * @param files Those of earlier openings, ascending.
   * @param nextFile The number of the next journal.
   * @param nextGroup The number of the next group, which counts through all journals.
   */
  constructor(
    medium: Medium,
    durability: Durability,
    files: readonly JournalFile[],
    nextFile: number,
    nextGroup: number,
  ) {
    this.#medium = medium
    this.#isSynced = durability === 'power-loss'
    this.#files = files
    this.#nextFile = nextFile
    this.#nextGroup = nextGroup
  }

  get files(): readonly JournalFile[] {
    return this.#files
  }

  /** The length of all journals. */
  get bytes(): number {
    return this.#files.reduce((sum, { end }) => sum + end, 0)
  }

  /** How many groups all journals have. */
  get groups(): number {
    return this.#nextGroup - (this.#files[0]?.firstGroup ?? this.#nextGroup)
  }

  /** Why nothing is written any more until the storage is opened again. */
  get failure(): StorageFailure | undefined {
    return this.#failure
  }

  /** Throws if nothing can be written any more, or if something else removed the journal. */
  assertWritable(): void {
    if (this.#failure !== undefined) throw this.#failure
    try {
      this.#medium.assertInPlace()
    } catch (error) {
      throw this.#fail(error as StorageFailure)
    }
  }

  /**
   * Begins the next journal, unless the last one is empty, so that the earlier ones no longer change. It
   * tells how many groups they have, so they are made durable first.
   */
  async begin(): Promise<void> {
    await this.#sync()
    if (this.#files.at(-1)?.end === HEADER_BYTES) return
    const [number, salt, firstGroup] = [this.#nextFile, newSalt(), this.#nextGroup]
    const header = encodeHeader({ kind: 'journal', number, firstGroup, salt })
    await this.#append({ number, salt, firstGroup, end: 0 }, header, true)
    this.#nextFile++
  }

  /** Begins a group, which {@link write} writes. Resolves to the number of its journal. */
  async beginGroup(): Promise<number> {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#files.length === 0) await this.begin()
    this.#group.begin(GROUP_HEADER_BYTES)
    this.#frames = 0
    return this.#files.at(-1)!.number
  }

  /** Adds a frame to the group. Returns its place in the journal. */
  add({ changes, data }: StagedFrame): Span {
    const { end, salt } = this.#files.at(-1)!
    const offset = end + this.#group.length
    const bytes = this.#group.add(changes.map(encodeChange), data && [data], salt)
    this.#frames++
    return { offset, bytes }
  }

  /**
   * Writes the group. After a rejection with `nothingWritten` it never appears; after any other one, nothing
   * more is written, and the next opening decides.
   */
  async write(): Promise<void> {
    const isSynced = this.#isSynced || this.#syncsNext
    if (this.#frames > 0 || (isSynced && this.#isDirty)) await this.#write(isSynced)
    // A request that came during a write without a sync is for the next group.
    if (isSynced) this.#syncsNext = false
  }

  /** Writes an empty group, so that the next opening has to make no other one durable. */
  async close(): Promise<void> {
    if (this.#files.length === 0) return
    await this.#sync()
    await this.beginGroup()
    await this.#write(true)
  }

  /** Makes the next group durable, and with it everything before. */
  requestSync(): void {
    this.#syncsNext = true
  }

  /** Forgets the journals before this number: a checkpoint holds their changes. */
  drop(before: number): void {
    this.#files = this.#files.filter(({ number }) => number >= before)
  }

  /** Makes everything durable that was written, by a group that is. */
  async #sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    if (!this.#isDirty) return
    await this.beginGroup()
    await this.#write(true)
  }

  async #write(isSynced: boolean): Promise<void> {
    const { bytes } = this.#group
    const file = this.#files.at(-1)!
    const [number, frames] = [this.#nextGroup, this.#frames]
    const flags = this.#isDirty ? GROUP_UNSYNCED : 0
    const framesBytes = bytes.length - GROUP_HEADER_BYTES
    encodeGroupHeader(bytes, { bytes: framesBytes, number, frames, flags }, file.salt)
    await this.#append(file, bytes, isSynced)
    this.#nextGroup++
  }

  async #append(file: JournalFile, bytes: Uint8Array, isSynced: boolean): Promise<void> {
    try {
      await this.#medium.append(fileName('journal', file.number), file.end, bytes, isSynced)
    } catch (error) {
      const failure = error as StorageFailure
      throw failure.nothingWritten ? failure : this.#fail(failure)
    }
    this.#isDirty = !isSynced
    const others = this.#files.filter(({ number }) => number !== file.number)
    this.#files = [...others, { ...file, end: file.end + bytes.length }]
  }

  /** Ends all writing until the storage is opened again, and logs the reason. Returns the failure. */
  #fail(failure: StorageFailure): StorageFailure {
    console.error(`headwater: ${failure.message}. Nothing is written until the storage is opened again.`)
    this.#failure = mediumFailure(failure, true)
    return failure
  }
}
