import { ROOT_TOKEN_CHARACTERS_MIN } from '../../src/engine/access/tokens.ts'
import { HeadwaterError } from '../../src/index.ts'
import { StorageFailure } from '../../src/storage/errors.ts'
import { TransferError } from '../transfer/service.ts'

/** 1: the command failed. 2: it was called with invalid arguments. 3: there was nothing to work on. */
type ExitCode = 1 | 2 | 3

/** Ends the command with an exit code and one line on standard error. */
export class CliError extends Error {
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** Ends the command because the user stopped it, with Ctrl+C (130) or `SIGTERM` (143). */
export class Interrupted extends Error {
  readonly exitCode: 130 | 143

  /** @param message One line on standard error; none if it is empty. */
  constructor(exitCode: 130 | 143, message = '') {
    super(message)
    this.exitCode = exitCode
  }
}

/** Returns whether the reader of a pipe is gone, as with `| head`. */
export function isBrokenPipe(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'EPIPE'
}

/** Returns what the command reports for an error; undefined for a defect in headwater. */
export function cliErrorOf(error: unknown): CliError | undefined {
  if (error instanceof CliError) return error
  if (error instanceof TransferError) return new CliError(1, printable(error.message))
  if (!HeadwaterError.is(error)) return undefined
  const { cause } = error
  if (StorageFailure.is(cause)) return new CliError(1, printable(storageMessage(error, cause)))
  return new CliError(1, `${printable(error.message)} (${error.code})`)
}

/** The message of a lock holder or a closed storage is complete without the engine's prefix. */
function storageMessage(error: HeadwaterError, { kind, message }: StorageFailure): string {
  if (kind !== 'blocked' && error.message.endsWith(message)) return error.message
  return kind === 'blocked' || kind === 'closed' ? message : `${error.message}: ${message}`
}

/**
 * Runs a validation of an argument.
 *
 * @param name The argument, for the message: `--scope`.
 * @throws CliError with exit code 2 if the validation throws `HeadwaterError`.
 */
export function validateArgument<Value>(validate: () => Value, name: string): Value {
  try {
    return validate()
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    throw new CliError(2, printable(`${name}: ${error.message}`))
  }
}

/** Control characters, line separators and marks of writing direction, which a terminal interprets. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Escapes untrusted text, so that it stays on one line and cannot control a terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)!.toString(16)}}`)
}

/**
 * Quotes an argument in an error message. Replaces one that is long enough to be a token: users paste tokens
 * into the wrong option, and error messages end up in logs.
 */
export function quoteArg(text: string): string {
  return isPossibleToken(text) ? '(redacted)' : `\`${printable(text)}\``
}

/** Longer names are of no use in a message. */
const NAME_CHARACTERS_MAX = 128

/** Quotes the name of a basin or a stream. One with a long part may be a token instead. */
export function quoteName(name: string): string {
  const isShown = name.length <= NAME_CHARACTERS_MAX && !name.split('/').some(isPossibleToken)
  return isShown ? `\`${printable(name)}\`` : '(redacted)'
}

/** Quotes the path of a file or a directory. Text without a separator may be a token instead. */
export function quotePath(path: string): string {
  return /[/\\]/.test(path) ? `\`${printable(path)}\`` : quoteArg(path)
}

/**
 * Makes a message of the system or of a service printable, and redacts an argument in it as {@link quoteArg}
 * does.
 */
export function redact(message: string, argument: string): string {
  const text = printable(message)
  return isPossibleToken(argument) ? text.replaceAll(printable(argument), '(redacted)') : text
}

/** Longer ones are of no use in a message. */
const DATE_TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]{1,30}(Z|[+-][\d:]{1,10})?$/

function isPossibleToken(text: string): boolean {
  return text.length >= ROOT_TOKEN_CHARACTERS_MIN && !DATE_TIME.test(text)
}
