import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  type DirectoryOptions,
  type UpgradeReport,
  upgradeDirectory,
  type VerifyNote,
  type VerifyProblem,
  type VerifyReport,
  verifyDirectory,
} from '../../storage/filesystem/index.ts'
import { command, flag, positional, type Values } from '../command.ts'
import { type CliContext, stopSignal } from '../context.ts'
import { CliError, Interrupted, printable, quotePath } from '../errors.ts'
import { bytesText, countText, progressBar } from '../progress.ts'

interface DirectoryArguments {
  readonly directory: string
  readonly json: boolean
  readonly quiet: boolean
}

/** The definitions of the arguments of a command that does its work on a directory. */
function directoryDefinitions(purpose: string) {
  return {
    directory: positional(`Directory to ${purpose}`),
    json: flag('Print the report as JSON'),
    quiet: flag('Print only problems'),
  } as const
}

/** @throws CliError with exit code 2. */
function parseDirectoryArguments(
  parsed: Values<ReturnType<typeof directoryDefinitions>>,
): DirectoryArguments {
  const { directory, json, quiet } = parsed
  if (directory === '') throw new CliError(2, 'DIRECTORY must not be empty')
  return { directory, json, quiet }
}

/** The texts that {@link workOnDirectory} shows. */
interface DirectoryWork {
  /** The title of the progress bar; undefined for none. */
  readonly title: string | undefined
  /** The message if the work is stopped. */
  readonly stopped: string
}

/**
 * Runs work on a directory that no engine has open: with a progress bar, until a signal stops it. Failures of
 * the storage become messages.
 */
async function workOnDirectory<Result>(
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
function noData(directory: string): CliError {
  return new CliError(3, `${quotePath(directory)} contains no data; is it the right directory?`)
}

const VERIFY_NOTES = [
  'No other process may have the directory open. Nothing in it is changed or removed.',
  'Exit code: 0 if the data is intact, 1 if there are problems or it cannot be read, 2 for invalid',
  'arguments, 3 if the directory contains no data, 130 and 143 if it was stopped.',
]

/** `headwater verify`: prints one line for each problem. */
async function verifyCommand(args: DirectoryArguments, context: CliContext): Promise<void> {
  const { directory, json, quiet } = args
  const work = {
    title: quiet || json ? undefined : 'Verifying',
    stopped: 'stopped before everything was read',
  }
  const report = await workOnDirectory(context, work, (options) => verifyDirectory(directory, options))
  if (json) context.print(JSON.stringify(report))
  else {
    for (const line of problemLines(report)) context.print(line)
    if (!quiet) for (const line of [...noteLines(report), verifySummary(report)]) context.print(line)
  }
  const { files, problemCount } = report
  if (problemCount > 0) throw new CliError(1, `${countText(problemCount, 'problem')} found`)
  if (files === 0) throw noData(directory)
}

function problemLines({ problems, problemCount }: VerifyReport): string[] {
  const more = problemCount - problems.length
  return [...problems.map(problemLine), ...(more > 0 ? [`... and ${countText(more, 'more problem')}`] : [])]
}

function problemLine({ file, offset, problem, log, stream }: VerifyProblem): string {
  const owner = stream === undefined ? log && ` (log ${log})` : ` (stream ${stream.basin}/${stream.name})`
  return printable(`${file} at ${offset}: ${problem}${owner ?? ''}`)
}

function noteLines({ notes, noteCount }: VerifyReport): string[] {
  const more = noteCount - notes.length
  return [...notes.map(noteLine), ...(more > 0 ? [`... and ${countText(more, 'more note')}`] : [])]
}

function noteLine({ file, offset, note, log }: VerifyNote): string {
  const place = offset === undefined ? file : `${file} at ${offset}`
  return printable(`Note: ${place}: ${note}${log === undefined ? '' : ` (log ${log})`}`)
}

function verifySummary(report: VerifyReport): string {
  const { files, bytes, formatVersions, documents, logs, blocks, records, problemCount } = report
  const contents = [
    countText(documents, 'document'),
    countText(logs, 'log'),
    countText(blocks, 'block'),
    countText(records, 'record'),
  ]
  const intact = files === 0 ? 'Empty' : 'Intact'
  const verdict = problemCount === 0 ? intact : `Damaged: ${countText(problemCount, 'problem')}`
  const format = formatVersions.length > 0 ? ` of format ${formatVersions.join(' and ')}` : ''
  return `${verdict}. Read ${countText(files, 'file')}${format} (${bytesText(bytes)}): ${contents.join(', ')}`
}

export const VERIFY = command({
  description: 'Read all data in a directory and check every checksum',
  examples: ['headwater verify ./data', 'headwater verify ./data --json'],
  notes: VERIFY_NOTES,
  definitions: directoryDefinitions('verify'),
  parse: parseDirectoryArguments,
  run: verifyCommand,
})

const UPGRADE_NOTES = [
  'Rewrites files of earlier storage formats, one after the other. The disk needs space for a copy of the',
  'largest file. Earlier releases of headwater cannot read an upgraded directory: make a copy or an export',
  'first. A directory can be opened without an upgrade. Databases are upgraded when they are opened.',
  'No other process may have the directory open. Damaged data stays damaged: run `headwater verify` first.',
  'Exit code: 0 if all files have the format of this release now, 1 if it failed or a format is unknown,',
  '2 for invalid arguments, 3 if the directory contains no data, 130 and 143 if it was stopped.',
]

/** Runs `headwater upgrade`, and prints which formats it found and how many files it rewrote. */
async function upgradeCommand(args: DirectoryArguments, context: CliContext): Promise<void> {
  const { directory, json, quiet } = args
  const title = quiet || json ? undefined : 'Upgrading'
  const work = { title, stopped: 'stopped; some files may have the new format, and the directory is intact' }
  const report = await workOnDirectory(context, work, (options) => upgradeDirectory(directory, options))
  if (json) context.print(JSON.stringify(report))
  if (report.formatVersionsBefore.length === 0) throw noData(directory)
  if (!json && !quiet) context.print(upgradeSummary(directory, report))
}

function upgradeSummary(
  directory: string,
  { files, formatVersion, formatVersionsBefore }: UpgradeReport,
): string {
  if (files === 0) return `${quotePath(directory)} has format ${formatVersion}: there is nothing to upgrade`
  const before = formatVersionsBefore.filter((version) => version !== formatVersion).join(' and ')
  return `Upgraded ${countText(files, 'file')} from format ${before} to ${formatVersion}`
}

export const UPGRADE = command({
  description: 'Rewrite the files of a directory in the storage format of this release',
  examples: ['headwater upgrade ./data', 'headwater upgrade ./data --json'],
  notes: UPGRADE_NOTES,
  definitions: directoryDefinitions('upgrade'),
  parse: parseDirectoryArguments,
  run: upgradeCommand,
})
