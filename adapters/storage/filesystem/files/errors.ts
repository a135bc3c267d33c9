import { StorageFailure } from '../../../../src/storage/errors.ts'

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** Whether the disk, or the quota of the user, is full. */
export function isFullError(error: unknown): boolean {
  if (StorageFailure.is(error)) return error.kind === 'quota'
  return FULL.has((error as NodeJS.ErrnoException | undefined)?.code ?? '')
}

/** Maps an error of the operating system to a failure that the engine understands. */
export function fileFailure(error: unknown, nothingWritten: boolean): StorageFailure {
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

export function corrupt(file: string, offset: number, what: string): StorageFailure {
  return new StorageFailure('corrupt', `${file} is damaged at offset ${offset}: ${what}`, {
    nothingWritten: true,
  })
}

/** Returns what `decode` does. An error of it becomes a failure that names the place of the damage. */
export function decodeOrThrowCorrupt<Result>(file: string, offset: number, decode: () => Result): Result {
  try {
    return decode()
  } catch (error) {
    throw corrupt(file, offset, (error as Error).message)
  }
}

/** Maps the errors of a file operation that writes nothing the caller asked for. */
export async function mapFileErrors<Result>(work: Result | Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw fileFailure(error, true)
  }
}
