import { StorageFailure } from '../../src/index.ts'
import {
  type VerifyNote,
  type VerifyProblem,
  type VerifyReport,
  verifyDirectory,
} from '../storage/filesystem/index.ts'
import { bytesText } from './bytes-text.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { printable } from './printable.ts'
import { progressBar } from './progress-bar.ts'
import { stopSignal } from './stop-signal.ts'
import type { VerifyArguments } from './verify-arguments.ts'

/** `headwater verify`: what is wrong stands on standard output, a line each. */
export async function verifyCommand(args: VerifyArguments, context: CliContext): Promise<void> {
  const { directory, json, quiet } = args
  const report = await verified(args, context)
  if (json) context.print(JSON.stringify(report))
  else {
    for (const line of problemLines(report)) context.print(line)
    if (!quiet) for (const line of [...noteLines(report), summary(report)]) context.print(line)
  }
  const { files, problemCount } = report
  if (problemCount > 0) throw new CliError(1, `${counted(problemCount, 'problem')} found`)
  // Nothing tells a directory that is new from one that is another, or whose disk is not mounted.
  if (files === 0)
    throw new CliError(3, printable(`nothing was written to ${directory} yet, if it is the right one`))
}

async function verified(
  { directory, json, quiet }: VerifyArguments,
  context: CliContext,
): Promise<VerifyReport> {
  const { clock } = context
  const stop = stopSignal(context)
  const stopped = new AbortController()
  void stop.requested.then(() => stopped.abort())
  const bar = progressBar(quiet || json ? { ...context, terminal: undefined } : context, 'Verifying')
  try {
    return await verifyDirectory(directory, {
      clock,
      signal: stopped.signal,
      onProgress: ({ done, total, file }) => bar.update(done, total, file),
    })
  } catch (error) {
    if (stopped.signal.aborted) throw new CliError(1, 'stopped before all was read')
    if (StorageFailure.is(error)) throw new CliError(1, printable(error.message))
    throw error
  } finally {
    bar.stop()
    stop.dispose()
  }
}

function problemLines({ problems, problemCount }: VerifyReport): string[] {
  const more = problemCount - problems.length
  return [...problems.map(problemLine), ...(more > 0 ? [`... and ${counted(more, 'more problem')}`] : [])]
}

function problemLine({ file, offset, problem, log, stream }: VerifyProblem): string {
  const owner = stream === undefined ? log && ` (log ${log})` : ` (stream ${stream.basin}/${stream.name})`
  return printable(`${file} at ${offset}: ${problem}${owner ?? ''}`)
}

function noteLines({ notes, noteCount }: VerifyReport): string[] {
  const more = noteCount - notes.length
  return [...notes.map(noteLine), ...(more > 0 ? [`... and ${counted(more, 'more note')}`] : [])]
}

function noteLine({ file, offset, note, log }: VerifyNote): string {
  const place = offset === undefined ? file : `${file} at ${offset}`
  return printable(`Note: ${place}: ${note}${log === undefined ? '' : ` (log ${log})`}`)
}

function summary({ files, bytes, documents, logs, blocks, records, problemCount }: VerifyReport): string {
  const kept = [
    counted(documents, 'document'),
    counted(logs, 'log'),
    counted(blocks, 'block'),
    counted(records, 'record'),
  ]
  const sound = files === 0 ? 'Empty' : 'Sound'
  const verdict = problemCount === 0 ? sound : `Damaged: ${counted(problemCount, 'problem')}`
  return `${verdict}. Read ${counted(files, 'file')} with ${bytesText(bytes)}: ${kept.join(', ')}`
}

function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
