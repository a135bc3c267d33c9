import { StorageFailure } from '../../../src/storage/errors.ts'

/**
 * What the log needs of a place that keeps files or objects. Names are flat. A file is either a **journal**,
 * which grows by one piece at a time, or **whole**: it appears complete, and never changes.
 *
 * Calls reject with {@link StorageFailure}. Of a call that writes, `nothingWritten` tells whether what it
 * wrote is certainly gone: if not, it may appear at the next opening.
 */
export interface Medium {
  /** The files and their lengths, without unfinished ones. */
  list(): Promise<readonly MediumFile[]>

  /**
   * Reads `length` bytes from `position` on, fewer only at the end of the file: into new memory, or into
   * `memory` if that is long enough. Rejects with {@link MissingFile} if there is no such file.
   */
  read(name: string, position: number, length: number, memory?: Uint8Array): Promise<Buffer>

  /**
   * Adds a piece to the end of a journal. At position 0 it creates the journal, which must not exist; that is
   * durable in any case. Another one is durable, with all before it, if `isSynced` is set.
   */
  append(name: string, position: number, piece: Uint8Array, isSynced: boolean): Promise<void>

  /**
   * Continues a journal of an earlier process: removes everything behind its last complete pieces, and makes
   * the rest durable, even if the system has lost those pieces without telling.
   */
  resume(name: string, position: number, lastPieces: Uint8Array): Promise<void>

  /** Begins a whole file. */
  create(name: string): Promise<NewFile>

  /** Removes a file. Its space can be used once this resolves. */
  remove(name: string): Promise<void>

  /** Throws if what was appended last is lost, because something else removed or replaced it. */
  assertInPlace(): void

  close(): Promise<void>
}

/** What reading needs. */
export type ReadableMedium = Pick<Medium, 'read'>

/** A file that is complete. */
export interface MediumFile {
  readonly name: string
  readonly bytes: number
}

/** A whole file while it is written, front to back. */
export interface NewFile {
  /** Adds bytes, which may change once it resolves. */
  write(bytes: Uint8Array): Promise<void>
  /** Gives the file its name. Durable once it resolves. */
  finish(): Promise<void>
  /** Removes what was written. Never rejects. */
  abandon(): Promise<void>
}

/** The failure for a file that is not as it was written. */
export class Damage extends StorageFailure {
  readonly file: string
  /** Bytes from the start of the file. */
  readonly offset: number
  readonly problem: string

  constructor(file: string, offset: number, problem: string) {
    super('corrupt', `${file} is damaged at offset ${offset}: ${problem}`, { nothingWritten: true })
    this.file = file
    this.offset = offset
    this.problem = problem
  }
}

/** The failure for a file that does not exist. */
export class MissingFile extends Damage {
  constructor(name: string) {
    super(name, 0, 'the file is missing')
  }
}

/** The failure for a file that something else removed, moved or replaced. */
export function lostFile(name: string): StorageFailure {
  const message = `${name} was removed or replaced while it was open, or its directory was removed or moved`
  return new StorageFailure('io', message, { nothingWritten: true })
}

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Whether the medium, or the quota of the user, is full. */
export function isFullError(error: unknown): boolean {
  if (StorageFailure.is(error)) return error.kind === 'quota'
  return FULL.has((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

/** Maps an error of the system to a failure that the engine understands. */
export function mediumFailure(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error) && error.nothingWritten === nothingWritten) return error
  const { message } = error as Error
  if (StorageFailure.is(error)) {
    return new StorageFailure(error.kind, message, { nothingWritten, cause: error })
  }
  const isFull = isFullError(error)
  return new StorageFailure(isFull ? 'quota' : 'io', isFull ? `no space left: ${message}` : message, {
    nothingWritten,
    cause: error,
  })
}
