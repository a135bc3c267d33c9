import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import {
  type ExportCounts,
  importLines,
  linesOf,
  plainInput,
  refuseOccupied,
  type Service,
  TransferError,
} from '../transfer/index.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { printable, retold } from './printable.ts'
import { progressBar } from './progress-bar.ts'
import type { ImportArguments } from './transfer-arguments.ts'
import { counted, transferSummary } from './transfer-summary.ts'
import { withService } from './with-service.ts'

/** A compressed file may be short, and yet take long: its progress is told in steps of so much. */
const CHUNK_BYTES = 64 * 1024

/** `headwater import`. */
export async function importCommand(args: ImportArguments, context: CliContext): Promise<void> {
  const { file, quiet } = args
  const size = file === undefined ? undefined : await sizeOf(file)
  const counts = await withService({ ...args, directoryMustExist: false }, context, (service, stopped) =>
    imported(service, { ...args, size, stopped }, context),
  )
  if (!quiet) context.printError(`Imported ${transferSummary(counts)}`)
}

interface Importing extends ImportArguments {
  /** Of the file, in bytes. */
  readonly size: number | undefined
  readonly stopped: AbortSignal
}

async function imported(
  service: Service,
  { file, filter, resume, quiet, size, stopped }: Importing,
  context: CliContext,
): Promise<ExportCounts> {
  if (file !== undefined && !resume) {
    await refuseOccupied(() => linesOf(plainInput(readFile(file))), service, filter)
  }
  const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Importing')
  let bytes = 0
  const input = measured(file === undefined ? standardInput(context, stopped) : readFile(file), (length) => {
    bytes += length
  })
  try {
    return await importLines(linesOf(plainInput(input)), service, {
      filter,
      resume,
      onProgress: ({ records }, stream) =>
        bar.update(bytes, size, `${counted(records, 'record')}  ${stream ?? ''}`),
    })
  } finally {
    bar.stop()
  }
}

/** Who writes to it may be silent for long, which must not keep the command from stopping. */
async function* standardInput(context: CliContext, stopped: AbortSignal): AsyncGenerator<Uint8Array> {
  const input = context.input()
  const stop = () => input.destroy(new TransferError('interrupted', { kind: 'aborted' }))
  stopped.addEventListener('abort', stop, { once: true })
  try {
    yield* input
  } finally {
    stopped.removeEventListener('abort', stop)
  }
}

async function* measured(
  input: AsyncIterable<Uint8Array>,
  took: (length: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) {
    took(chunk.length)
    yield chunk
  }
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) yield chunk
  } catch (error) {
    throw unreadable(path, error)
  }
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size
  } catch (error) {
    throw unreadable(path, error)
  }
}

function unreadable(path: string, error: unknown): CliError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return new CliError(1, `there is no file ${printable(path)}`)
  return new CliError(1, `cannot read ${printable(path)}: ${retold(message, path)}`)
}
