import {
  type VerifyNote,
  type VerifyProblem,
  type VerifyReport,
  verifyDirectory,
} from '../../storage/filesystem/index.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import {
  type DirectoryArguments,
  directoryDefinitions,
  noData,
  parseDirectoryArguments,
  workOnDirectory,
} from '../directory-work.ts'
import { CliError, printable } from '../errors.ts'
import { bytesText, countText } from '../progress.ts'

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
    if (!quiet) for (const line of [...noteLines(report), summary(report)]) context.print(line)
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
  examples: ['headwater verify ./data', 'headwater verify ./data --json'],
  notes: VERIFY_NOTES,
  definitions: directoryDefinitions('verify'),
  parse: parseDirectoryArguments,
  run: verifyCommand,
})
