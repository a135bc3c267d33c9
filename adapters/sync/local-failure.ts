import type { HeadwaterError } from '../../src/model/errors.ts'
import { isStreamMissing } from '../../src/sync/errors.ts'

/** A failure of the local stream. */
export class LocalFailure extends Error {
  readonly error: unknown

  constructor(error: unknown) {
    super('the local stream failed')
    this.error = error
  }
}

/** Settles as `work` does, with failures as {@link LocalFailure}. */
export async function locally<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw new LocalFailure(error)
  }
}

/** Whether an append failed because the copy was deleted. */
export function isCopyGone(error: HeadwaterError): boolean {
  return error.code === 'stream_deletion_pending' || error.code === 'stream_deleted' || isStreamMissing(error)
}
