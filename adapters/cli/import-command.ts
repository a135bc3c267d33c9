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
import { type ImportFile, openImportFile } from './import-file.ts'
import { printable } from './printable.ts'
import { progressBar } from './progress-bar.ts'
import type { ImportArguments } from './transfer-arguments.ts'
import { counted, transferSummary } from './transfer-summary.ts'
import { withService } from './with-service.ts'

/** `headwater import`. */
export async function importCommand(args: ImportArguments, context: CliContext): Promise<void> {
  const { file: path, quiet } = args
  const file = path === undefined ? undefined : await openImportFile(path)
  try {
    const counts = await withService({ ...args, directoryMustExist: false }, context, (service, stopped) =>
      imported(service, { ...args, file, stopped }, context),
    )
    if (!quiet) context.printError(`Imported ${transferSummary(counts)}`)
  } finally {
    await file?.close()
  }
}

interface Importing extends Omit<ImportArguments, 'file'> {
  /** Undefined: standard input. */
  readonly file: ImportFile | undefined
  readonly stopped: AbortSignal
}

async function imported(
  service: Service,
  { file, filter, resume, quiet, stopped }: Importing,
  context: CliContext,
): Promise<ExportCounts> {
  if (file?.size !== undefined && !resume) {
    await refuseOccupied(() => linesOf(plainInput(file.read())), service, filter)
  }
  const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Importing')
  const warnings: string[] = []
  let bytes = 0
  const input = measured(file === undefined ? standardInput(context, stopped) : file.read(), (length) => {
    bytes += length
  })
  try {
    return await importLines(linesOf(plainInput(input)), service, {
      filter,
      resume,
      onProgress: ({ records }, stream) =>
        bar.update(bytes, file?.size, `${counted(records, 'record')}  ${stream ?? ''}`),
      onWarning: (message) => warnings.push(message),
    })
  } finally {
    bar.stop()
    for (const message of warnings) context.printError(`Warning: ${printable(message)}`)
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
