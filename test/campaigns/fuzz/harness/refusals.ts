import { CliError } from '../../../../adapters/cli/errors.ts'
import { TransferError } from '../../../../adapters/transfer/transfer-error.ts'
import { type ErrorCode, HeadwaterError } from '../../../../src/model/errors.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { CompressedDataError } from '../../../../src/wire/codec.ts'

/** Whether a decoder is documented to throw this error. */
export type Refuses = (error: unknown) => boolean

export const nothing: Refuses = () => false

export function headwaterError(...codes: readonly ErrorCode[]): Refuses {
  return (error) => HeadwaterError.is(error) && codes.includes(error.code)
}

/**
 * A `RangeError` of this project. Those of the platform (invalid length or offset, stack exhausted) indicate
 * a defect.
 */
export const rangeError: Refuses = (error) =>
  error instanceof RangeError && !('code' in error) && !OF_PLATFORM.test(error.message)

/** Messages of the platform begin with a capital letter, except for one. */
const OF_PLATFORM = /^([A-Z]|offset is out of bounds)/

export const corrupt: Refuses = (error) => StorageFailure.is(error) && error.kind === 'corrupt'

export const compressedDataError: Refuses = (error) => error instanceof CompressedDataError

export const transferError: Refuses = (error) => error instanceof TransferError

/** Invalid arguments of a command. */
export const usageError: Refuses = (error) => error instanceof CliError && error.exitCode === 2
