import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  type VerifyNote,
  type VerifyProblem,
  type VerifyReport,
  verifyDirectory,
} from '../../storage/filesystem/index.ts'
import type { CliContext } from '../context.ts'
import { CliError, Interrupted, printable, quotePath } from '../errors.ts'
import { newCommand } from '../options.ts'
import { bytesText, progressBar } from '../output.ts'
import { countText, nonEmpty } from '../values.ts'

export const verifyCommand = (context: CliContext) =>
  newCommand('verify', {
    description: 'Read all data in a directory and check every checksum',
    examples: ['headwater verify ./data', 'headwater verify ./data --json'],
    notes: [
      'No other process may have the directory open. Nothing in it is changed or removed.',
      'Exit code: 0 if the data is intact, 1 if there are problems or it cannot be read, 2 for invalid',
      'arguments, 3 if the directory contains no data, 130 and 143 if it was stopped.',
    ],
  })
    .argument('<DIRECTORY>', 'Directory to verify', nonEmpty)
    .option('--json', 'Print the report as JSON')
    .option('--quiet', 'Print only problems')
    .action(async (directory, { json = false, quiet = false }) => {
      const report = await verify(directory, !quiet && !json, context)
      if (json) context.print(JSON.stringify(report))
      else for (const line of linesOf(report, quiet)) context.print(printable(line))
      const { files, problems } = report
      if (problems.length > 0) throw new CliError(1, `${countText(problems.length, 'problem')} found`)
      // It may be the wrong directory, or its disk may not be mounted.
      if (files === 0) {
        throw new CliError(3, `${quotePath(directory)} contains no data; is it the right directory?`)
      }
    })

/** Verifies with a progress bar, until a signal stops it. Failures of the storage become messages. */
async function verify(directory: string, hasBar: boolean, context: CliContext): Promise<VerifyReport> {
  const signal = context.stopSignal()
  const bar = progressBar(context, 'Verifying', !hasBar)
  try {
    return await verifyDirectory(directory, {
      signal,
      onProgress: ({ done, total, file }) => bar.update(done, total, file),
    })
  } catch (error) {
    if (error instanceof Interrupted)
      throw new Interrupted(error.exitCode, 'stopped before everything was read')
    if (StorageFailure.is(error)) throw new CliError(1, printable(error.message))
    throw error
  } finally {
    bar.stop()
  }
}

function linesOf(report: VerifyReport, quiet: boolean): string[] {
  const problems = report.problems.map(problemLine)
  return quiet ? problems : [...problems, ...report.notes.map(noteLine), summary(report)]
}

function problemLine({ file, offset, problem, log, stream }: VerifyProblem): string {
  const owner = stream === undefined ? log && ` (log ${log})` : ` (stream ${stream.basin}/${stream.name})`
  return `${file} at ${offset}: ${problem}${owner ?? ''}`
}

function noteLine({ file, offset, note, log }: VerifyNote): string {
  const place = offset === undefined ? file : `${file} at ${offset}`
  return `Note: ${place}: ${note}${log === undefined ? '' : ` (log ${log})`}`
}

function summary(report: VerifyReport): string {
  const { files, bytes, formatVersions, documents, logs, blocks, records, problems } = report
  const contents = [
    countText(documents, 'document'),
    countText(logs, 'log'),
    countText(blocks, 'block'),
    countText(records, 'record'),
  ]
  const intact = files === 0 ? 'Empty' : 'Intact'
  const verdict = problems.length === 0 ? intact : `Damaged: ${countText(problems.length, 'problem')}`
  const format = formatVersions.length > 0 ? ` of format ${formatVersions.join(' and ')}` : ''
  return `${verdict}. Read ${countText(files, 'file')}${format} (${bytesText(bytes)}): ${contents.join(', ')}`
}
