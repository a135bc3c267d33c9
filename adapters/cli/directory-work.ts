import { StorageFailure } from '../../src/storage/errors.ts'
import type { DirectoryOptions } from '../storage/filesystem/index.ts'
import { flag, positional, type Values } from './arguments.ts'
import { type CliContext, stopSignal } from './context.ts'
import { CliError, Interrupted, printable, quotePath } from './errors.ts'
import { progressBar } from './progress.ts'

export interface DirectoryArguments {
  readonly directory: string
  readonly json: boolean
  readonly quiet: boolean
}

/** The definitions of the arguments of a command that does its work on a directory. */
export function directoryDefinitions(purpose: string) {
  return {
    directory: positional(`Directory to ${purpose}`),
    json: flag('Print the report as JSON'),
    quiet: flag('Print only problems'),
  } as const
}

/** @throws CliError with exit code 2. */
export function parseDirectoryArguments(
  parsed: Values<ReturnType<typeof directoryDefinitions>>,
): DirectoryArguments {
  const { directory, json, quiet } = parsed
  if (directory === '') throw new CliError(2, 'DIRECTORY must not be empty')
  return { directory, json, quiet }
}

/** The texts that {@link workOnDirectory} shows. */
export interface DirectoryWork {
  /** The title of the progress bar; undefined for none. */
  readonly title: string | undefined
  /** The message if the work is stopped. */
  readonly stopped: string
}

/**
 * Runs work on a directory that no engine has open: with a progress bar, until a signal stops it. Failures of
 * the storage become messages.
 */
export async function workOnDirectory<Result>(
  context: CliContext,
  { title, stopped }: DirectoryWork,
  work: (options: DirectoryOptions) => Promise<Result>,
): Promise<Result> {
  const stop = stopSignal(context)
  const bar = progressBar(title === undefined ? { ...context, terminal: undefined } : context, title ?? '')
  try {
    return await work({
      clock: context.clock,
      signal: stop.signal,
      onProgress: ({ done, total, file }) => bar.update(done, total, file),
    })
  } catch (error) {
    if (stop.signal.aborted) throw Interrupted.of(stop.signal, stopped)
    if (StorageFailure.is(error)) throw new CliError(1, printable(error.message))
    throw error
  } finally {
    bar.stop()
    stop.dispose()
  }
}

/** Returns the error for an empty directory: it may be the wrong one, or its disk may not be mounted. */
export function noData(directory: string): CliError {
  return new CliError(3, `${quotePath(directory)} contains no data; is it the right directory?`)
}
