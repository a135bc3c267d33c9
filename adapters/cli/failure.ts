import { HeadwaterError, StorageFailure } from '../../src/index.ts'
import { printable } from './printable.ts'

/** Ends the command with one line on standard error. Code 2: it was called wrongly. Code 1: it could not do what was asked. Code 3: there was nothing to do it with. */
export class CliError extends Error {
  readonly exitCode: 1 | 2 | 3

  constructor(exitCode: 1 | 2 | 3, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** What a service answered instead of what it was asked for. */
export class ServiceError extends CliError {
  readonly code: string

  constructor(code: string, message: string) {
    super(1, `${printable(message)} (${printable(code)})`)
    this.code = code
  }
}

/** The failure as a service would tell it; undefined for what is a defect. */
export function cliErrorOf(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error
  if (!HeadwaterError.is(error)) return undefined
  const { cause } = error
  if (StorageFailure.is(cause)) return new CliError(1, printable(storageText(error, cause)))
  return new ServiceError(error.code, error.message)
}

/** Who has a directory, and that it is closed, is all that there is to say. */
function storageText(error: HeadwaterError, { kind, message }: StorageFailure): string {
  return kind === 'blocked' || kind === 'closed' ? message : `${error.message}: ${message}`
}

/** Runs what judges a part of the command line: its refusal means that the command was called wrongly. */
export function refusingUsage<Value>(judge: () => Value, role?: string): Value {
  try {
    return judge()
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw new CliError(2, printable(role === undefined ? error.message : `${role}: ${error.message}`))
  }
}
