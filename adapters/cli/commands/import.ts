import { type FileHandle, open } from 'node:fs/promises'
import {
  assertUnoccupied,
  type ExportCounts,
  gunzipped,
  importLines,
  linesOf,
  type Service,
  TransferError,
} from '../../transfer/index.ts'
import { command, positional, type Values } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable, quotePath, redact } from '../errors.ts'
import { countText, progressBar } from '../progress.ts'
import {
  parseTransferArguments,
  TRANSFER_DEFINITIONS,
  type TransferArguments,
  transferSummary,
  withService,
} from '../transfer-target.ts'

const IMPORT_DEFINITIONS = {
  file: positional('File to read, compressed or not. Default: standard input', { required: false }),
  ...TRANSFER_DEFINITIONS,
} as const

const IMPORT_NOTES = [
  'Fails if a stream exists and has records; if the export is a file, before anything is written. With',
  '--resume, such a stream is continued at its tail if its last record matches the export. A truncated',
  'file is imported as far as it goes; then the exit code is 1. Retention starts again with the import.',
]

interface ImportArguments extends TransferArguments {
  /** Undefined: standard input. */
  readonly file: string | undefined
}

/** @throws CliError with exit code 2. */
function parseImportArguments(
  parsed: Values<typeof IMPORT_DEFINITIONS>,
  { env }: CliContext,
): ImportArguments {
  const { file } = parsed
  if (file === '') throw new CliError(2, 'FILE must not be empty')
  return { ...parseTransferArguments(parsed, env), file: file === '-' ? undefined : file }
}

/** `headwater import`. */
async function importCommand(args: ImportArguments, context: CliContext): Promise<void> {
  const { file: path, quiet } = args
  const file = path === undefined ? undefined : await openImportFile(path)
  try {
    const counts = await withService({ ...args, mustExist: false }, context, (service, signal) =>
      importFrom(service, { ...args, file, signal }, context),
    )
    if (!quiet) context.printError(`Imported ${transferSummary(counts)}`)
  } finally {
    await file?.close()
  }
}

interface ImportSource extends Omit<ImportArguments, 'file'> {
  /** Undefined: standard input. */
  readonly file: ImportFile | undefined
  readonly signal: AbortSignal
}

async function importFrom(
  service: Service,
  { file, filter, resume, quiet, signal }: ImportSource,
  context: CliContext,
): Promise<ExportCounts> {
  if (file?.size !== undefined && !resume) {
    await assertUnoccupied(() => linesOf(gunzipped(file.read())), service, filter)
  }
  const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Importing')
  const warnings: string[] = []
  let bytes = 0
  const input = countBytes(file === undefined ? standardInput(context, signal) : file.read(), (length) => {
    bytes += length
  })
  try {
    return await importLines(linesOf(gunzipped(input)), service, {
      filter,
      resume,
      onProgress: ({ records }, stream) =>
        bar.update(bytes, file?.size, `${countText(records, 'record')}  ${stream ?? ''}`),
      onWarning: (message) => warnings.push(message),
    })
  } finally {
    bar.stop()
    for (const message of warnings) context.printError(`Warning: ${printable(message)}`)
  }
}

/**
 * Reads standard input until the signal: its writer may be silent for long, and must not prevent the stop.
 */
async function* standardInput(context: CliContext, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const input = context.input()
  const stop = () => input.destroy(new TransferError('interrupted', { kind: 'aborted' }))
  signal.addEventListener('abort', stop, { once: true })
  try {
    yield* input
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

async function* countBytes(
  input: AsyncIterable<Uint8Array>,
  onBytes: (length: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of input) {
    onBytes(chunk.length)
    yield chunk
  }
}

/** Small, because progress is reported per chunk, and a chunk of a compressed file may take long. */
const CHUNK_BYTES = 64 * 1024

interface ImportFile {
  /** The size in bytes; undefined for a pipe, which can be read only once. */
  readonly size: number | undefined
  /** Reads from the beginning. May be repeated if the file has a size. */
  read(): AsyncGenerator<Uint8Array>
  close(): Promise<void>
}

/** Rejects with {@link CliError}, as reading does. */
async function openImportFile(path: string): Promise<ImportFile> {
  let file: FileHandle | undefined
  try {
    file = await open(path, 'r')
    const stats = await file.stat()
    return new OpenFile(file, path, stats.isFile() ? stats.size : undefined)
  } catch (error) {
    await file?.close()
    throw readError(path, error)
  }
}

class OpenFile implements ImportFile {
  readonly #file: FileHandle
  readonly #path: string
  readonly size: number | undefined

  constructor(file: FileHandle, path: string, size: number | undefined) {
    this.#file = file
    this.#path = path
    this.size = size
  }

  async *read(): AsyncGenerator<Uint8Array> {
    // An explicit start makes a second read begin at 0. A pipe has no positions.
    const start = this.size === undefined ? undefined : 0
    const options = { highWaterMark: CHUNK_BYTES, autoClose: false, ...(start !== undefined && { start }) }
    try {
      for await (const chunk of this.#file.createReadStream(options)) yield chunk
    } catch (error) {
      throw readError(this.#path, error)
    }
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}

function readError(path: string, error: unknown): CliError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return new CliError(1, `file ${quotePath(path)} does not exist`)
  return new CliError(1, `cannot read ${quotePath(path)}: ${redact(message, path)}`)
}

export const IMPORT = command({
  description: 'Import an export; records keep their sequence numbers and timestamps',
  examples: [
    'headwater import backup.jsonl.gz --storage ./restored',
    'gunzip < backup.jsonl.gz | headwater import --resume',
  ],
  notes: IMPORT_NOTES,
  definitions: IMPORT_DEFINITIONS,
  parse: parseImportArguments,
  run: importCommand,
})
