import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  type VerifyNote,
  type VerifyProblem,
  type VerifyReport,
  verifyDirectory,
} from '../../storage/filesystem/index.ts'
import { command, flag, positional, type Values } from '../command.ts'
import { type CliContext, stopSignal } from '../context.ts'
import { CliError, Interrupted, printable, quotePath } from '../errors.ts'
import { bytesText, countText, progressBar } from '../progress.ts'

const DEFINITIONS = {
  directory: positional('Directory to verify'),
  json: flag('Print the report as JSON'),
  quiet: flag('Print only problems'),
} as const

interface VerifyArguments {
  readonly directory: string
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws CliError with exit code 2. */
function parseArguments({ directory, json, quiet }: Values<typeof DEFINITIONS>): VerifyArguments {
  if (directory === '') throw new CliError(2, 'DIRECTORY must not be empty')
  return { directory, json, quiet }
}

/** Verifies with a progress bar, until a signal stops it. Failures of the storage become messages. */
async function verify(directory: string, hasBar: boolean, context: CliContext): Promise<VerifyReport> {
  const stop = stopSignal(context)
  const bar = progressBar(hasBar ? context : { ...context, terminal: undefined }, 'Verifying')
  try {
    return await verifyDirectory(directory, {
      signal: stop.signal,
      onProgress: ({ done, total, file }) => bar.update(done, total, file),
    })
  } catch (error) {
    if (stop.signal.aborted) throw Interrupted.of(stop.signal, 'stopped before everything was read')
    if (StorageFailure.is(error)) throw new CliError(1, printable(error.message))
    throw error
  } finally {
    bar.stop()
    stop.dispose()
  }
}

/** `headwater verify`: prints one line for each problem. */
async function verifyCommand(
  { directory, json, quiet }: VerifyArguments,
  context: CliContext,
): Promise<void> {
  const report = await verify(directory, !quiet && !json, context)
  if (json) context.print(JSON.stringify(report))
  else {
    for (const line of problemLines(report)) context.print(line)
    if (!quiet) for (const line of [...noteLines(report), summary(report)]) context.print(line)
  }
  const { files, problemCount } = report
  if (problemCount > 0) throw new CliError(1, `${countText(problemCount, 'problem')} found`)
  // It may be the wrong directory, or its disk may not be mounted.
  if (files === 0) {
    throw new CliError(3, `${quotePath(directory)} contains no data; is it the right directory?`)
  }
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

function summary(report: VerifyReport): string {
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
  notes: [
    'No other process may have the directory open. Nothing in it is changed or removed.',
    'Exit code: 0 if the data is intact, 1 if there are problems or it cannot be read, 2 for invalid',
    'arguments, 3 if the directory contains no data, 130 and 143 if it was stopped.',
  ],
  definitions: DEFINITIONS,
  parse: parseArguments,
  run: verifyCommand,
})
