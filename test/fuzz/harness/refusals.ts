import { CliError } from '../../../adapters/cli/failure.ts'
import { TransferError } from '../../../adapters/transfer/transfer-error.ts'
import { type ErrorCode, HeadwaterError } from '../../../src/model/errors.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { CompressedDataError } from '../../../src/wire/codec.ts'

/** The errors that decoders are documented to throw. */
type Refuses = (error: unknown) => boolean

export const nothing: Refuses = () => false

export function headwaterError(...codes: readonly ErrorCode[]): Refuses {
  return (error) => HeadwaterError.is(error) && codes.includes(error.code)
}

/** One that the project throws on purpose: those of the platform (no such length, no such offset, stack exhausted) tell of a mistake. */
export const rangeError: Refuses = (error) =>
  error instanceof RangeError && !('code' in error) && !OF_PLATFORM.test(error.message)

/** The platform's messages begin with a capital letter, but for one. */
const OF_PLATFORM = /^([A-Z]|offset is out of bounds)/

export const corrupt: Refuses = (error) => StorageFailure.is(error) && error.kind === 'corrupt'

export const compressedDataError: Refuses = (error) => error instanceof CompressedDataError

export const transferError: Refuses = (error) => error instanceof TransferError

/** The command was called wrongly. */
export const usageError: Refuses = (error) => error instanceof CliError && error.exitCode === 2
