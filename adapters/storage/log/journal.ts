import type { Durability } from '../../../src/storage/contract.ts'
import type { StorageFailure } from '../../../src/storage/errors.ts'
import { type Medium, mediumFailure } from '../media/medium.ts'
import { type Change, encodeChange } from './changes.ts'
import {
  encodeGroupHeader,
  encodeHeader,
  FRAME_BYTES_MAX,
  FrameWriter,
  fileName,
  GROUP_CLOSED,
  GROUP_HEADER_BYTES,
  GROUP_UNSYNCED,
  HEADER_BYTES,
  newSalt,
} from './format.ts'

/** Calls that wait are written together up to this size, in bytes; a single call may be larger. */
export const GROUP_BYTES_MAX = 8 * 1_048_576
const BUFFER_BYTES = 256 * 1024

/** Changes that are written as one frame. */
export interface StagedFrame {
  readonly changes: readonly Change[]
  /** The data of its block. */
  readonly data?: Uint8Array | undefined
}

/** The place of a frame in a group or a file. */
export interface FramePlace {
  readonly offset: number
  readonly bytes: number
}

/** A journal whose changes the last checkpoint does not hold. */
export interface JournalFile {
  readonly number: number
  readonly salt: number
  /** Everything before it is written. */
  end: number
}

/** The journals, of which the last one grows by a group at a time. */
export class Journal {
  readonly #medium: Medium
  #isSynced: boolean
  /** Not empty once something was written. */
  #files: JournalFile[]
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
    this.#files = [...files]
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
      throw this.fail(error as StorageFailure)
    }
  }

  /** The journal of the next group, which is created if there is none. */
  async current(): Promise<JournalFile> {
    if (this.#failure !== undefined) throw this.#failure
    return this.#files.at(-1) ?? this.begin()
  }

  /**
   * Begins the next journal, so that the earlier ones no longer change. It tells how many groups they have,
   * so they are made durable first.
   */
  async begin(): Promise<JournalFile> {
    if (this.#failure !== undefined) throw this.#failure
    await this.sync()
    const [number, salt] = [this.#nextFile, newSalt()]
    const header = encodeHeader({ kind: 'journal', number, firstGroup: this.#nextGroup, salt })
    await this.#append(fileName('journal', number), 0, header, true)
    this.#nextFile++
    const file = { number, salt, end: HEADER_BYTES }
    this.#files.push(file)
    return file
  }

  /**
   * Writes a group to the journal that {@link current} returned. After a rejection with `nothingWritten` it
   * never appears; after any other one, nothing more is written, and the next opening decides.
   */
  async write(group: GroupWriter): Promise<void> {
    const file = this.#files.at(-1)!
    const bytes = group.finish(this.#nextGroup, this.#isSynced ? 0 : GROUP_UNSYNCED)
    await this.#append(fileName('journal', file.number), file.end, bytes, this.#isSynced)
    file.end += bytes.length
    this.#nextGroup++
  }

  /** Writes the group that tells that everything before it is durable. */
  async close(): Promise<void> {
    const file = this.#files.at(-1)
    if (file === undefined || this.#failure !== undefined) return
    await this.sync()
    const group = new GroupWriter()
    group.begin(file.salt)
    const bytes = group.finish(this.#nextGroup, GROUP_CLOSED)
    await this.#append(fileName('journal', file.number), file.end, bytes, true)
  }

  /**
   * Makes everything durable that was written. A failure is permanent: a later sync would succeed without
   * what the system has dropped.
   */
  async sync(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const file = this.#files.at(-1)
    if (this.#isSynced || file === undefined) return
    try {
      await this.#medium.sync(fileName('journal', file.number))
    } catch (error) {
      throw this.fail(mediumFailure(error, true))
    }
  }

  /** Makes everything durable, and every later group before it is acknowledged. */
  async requireSync(): Promise<void> {
    await this.sync()
    this.#isSynced = true
  }

  /** Forgets the journals before this number: a checkpoint holds their changes. */
  drop(before: number): void {
    this.#files = this.#files.filter(({ number }) => number >= before)
  }

  /** Ends all writing until the storage is opened again, and logs the reason. Returns it. */
  fail(failure: StorageFailure): StorageFailure {
    if (this.#failure === undefined) {
      console.error(`headwater: ${failure.message}. Nothing is written until the storage is opened again.`)
      this.#failure = mediumFailure(failure, true)
    }
    return this.#failure
  }

  async #append(name: string, position: number, bytes: Uint8Array, isSynced: boolean): Promise<void> {
    try {
      await this.#medium.append(name, position, bytes, isSynced)
    } catch (error) {
      const failure = error as StorageFailure
      if (!failure.nothingWritten) this.fail(failure)
      else this.#failIfLost()
      throw failure
    }
  }

  #failIfLost(): void {
    try {
      this.#medium.assertInPlace()
    } catch (error) {
      this.fail(error as StorageFailure)
    }
  }
}

/** The frames that become durable together. One buffer is reused for all groups. */
export class GroupWriter {
  #writer = new FrameWriter(BUFFER_BYTES)
  #salt = 0
  #frames = 0

  begin(salt: number): void {
    this.#salt = salt
    this.#frames = 0
    // Releases the memory that a large call needed.
    if (this.#writer.length > GROUP_BYTES_MAX) this.#writer = new FrameWriter(BUFFER_BYTES)
    this.#writer.truncate(0)
    this.#writer.skip(GROUP_HEADER_BYTES)
  }

  get isEmpty(): boolean {
    return this.#frames === 0
  }

  /** Adds the frames of a call: all or, if it throws, none. Returns their places in the group. */
  add(frames: readonly StagedFrame[]): FramePlace[] {
    const [start, count] = [this.#writer.length, this.#frames]
    try {
      return frames.map(({ changes, data }) => {
        const offset = this.#writer.length
        const bytes = this.#writer.add(changes.map(encodeChange), data && [data], this.#salt)
        if (bytes > FRAME_BYTES_MAX) {
          throw new RangeError(`commit has ${bytes} bytes; the limit is ${FRAME_BYTES_MAX}`)
        }
        this.#frames++
        return { offset, bytes }
      })
    } catch (error) {
      this.#writer.truncate(start)
      this.#frames = count
      throw error
    }
  }

  /** The complete group: a view, valid until the next {@link begin}. */
  finish(number: number, flags: number): Buffer {
    const { bytes } = this.#writer
    const framesBytes = bytes.length - GROUP_HEADER_BYTES
    encodeGroupHeader(bytes, { bytes: framesBytes, number, frames: this.#frames, flags }, this.#salt)
    return bytes
  }
}
