import { HeadwaterError } from '../model/errors.ts'

/** What the codec makes of stored bytes. Throws 500 `storage` when it refuses them. */
export function intact<Result>(decode: () => Result): Result {
  try {
    return decode()
  } catch (cause) {
    throw new HeadwaterError('storage', 'a stored block is damaged', { cause })
  }
}
