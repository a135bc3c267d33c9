import { StorageFailure } from '../../../src/storage/errors.ts'

const FULL = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

/** What an error of the system means to the engine. */
export function failureOf(error: unknown, nothingWritten: boolean): StorageFailure {
  if (StorageFailure.is(error) && error.nothingWritten === nothingWritten) return error
  const { code, message } = error as NodeJS.ErrnoException
  const isFull = code !== undefined && FULL.has(code)
  const kind = StorageFailure.is(error) ? error.kind : isFull ? 'quota' : 'io'
  return new StorageFailure(kind, isFull ? `no space left: ${message}` : message, {
    nothingWritten,
    cause: error,
  })
}

export function corrupt(file: string, offset: number, what: string): StorageFailure {
  return new StorageFailure('corrupt', `${file} is damaged at offset ${offset}: ${what}`, {
    nothingWritten: true,
  })
}

/** Runs a call of the file layer that writes nothing of the caller's. */
export async function reading<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw failureOf(error, true)
  }
}
