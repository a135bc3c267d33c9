import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../src/model/names.ts'
import { createHandler } from '../http/index.ts'
import {
  type ExportCounts,
  type NameFilter,
  parseNameFilter,
  Service,
  TransferError,
  type TransferFilter,
} from '../transfer/index.ts'
import { type CliContext, stopSignal } from './context.ts'
import { CliError, Interrupted, printable } from './errors.ts'
import { countText } from './progress.ts'
import { checkExists, withEngine } from './storage-location.ts'
import {
  displayUrl,
  encryptionKey,
  IN_PROCESS_URL,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  type Target,
  tokenHint,
} from './target.ts'

/** What `export` and `import` have in common. */
export const TRANSFER_DEFINITIONS = {
  ...TARGET_DEFINITIONS,
  basin: { type: 'string', description: 'Only this basin: NAME, or PREFIX* for all with this prefix' },
  stream: { type: 'string', description: 'Only streams with this name, in the same form' },
  ...KEY_DEFINITION,
  resume: { type: 'boolean', default: false, description: 'Continue an interrupted transfer' },
  quiet: { type: 'boolean', default: false, description: 'No progress bar and no summary' },
} as const

export interface TransferArguments {
  readonly target: Target
  readonly encryptionKey: string | undefined
  readonly filter: TransferFilter
  readonly resume: boolean
  readonly quiet: boolean
}

interface TransferValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly storage?: string | undefined
  readonly dir?: string | undefined
  readonly basin?: string | undefined
  readonly stream?: string | undefined
  readonly 'encryption-key'?: string | undefined
  readonly resume: boolean
  readonly quiet: boolean
}

/** @throws CliError with exit code 2. */
export function parseTransferArguments(values: TransferValues, env: CliContext['env']): TransferArguments {
  return {
    target: parseTarget(values, env),
    encryptionKey: encryptionKey(values['encryption-key'], env),
    filter: transferFilter(values),
    resume: values.resume,
    quiet: values.quiet,
  }
}

/** @throws CliError with exit code 2. */
export function transferFilter({
  basin = '*',
  stream = '*',
}: Pick<TransferValues, 'basin' | 'stream'>): TransferFilter {
  const [basins, streams] = [parseNameFilter(basin), parseNameFilter(stream)]
  checkFilter('`--basin`', basins, basinNameProblem, (prefix) => basinPrefixProblem(prefix, 'prefix'))
  checkFilter('`--stream`', streams, streamNameProblem, (prefix) => streamPrefixProblem(prefix, 'prefix'))
  return { basins, streams }
}

function checkFilter(
  option: string,
  filter: NameFilter,
  nameProblem: (name: string) => string | undefined,
  prefixProblem: (prefix: string) => string | undefined,
): void {
  const problem = 'exact' in filter ? nameProblem(filter.exact) : prefixProblem(filter.prefix)
  if (problem !== undefined) throw new CliError(2, `${option}: ${problem}`)
}

/**
 * Runs a transfer to or from its target. Opens a storage for the time of the transfer. A signal stops the
 * transfer between two requests.
 *
 * @throws CliError
 */
export async function withService<Result>(
  args: TransferArguments & { readonly mustExist: boolean },
  context: CliContext,
  use: (service: Service, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = stopSignal(context)
  try {
    return await connect(args, context, stop.signal, use)
  } catch (error) {
    if (!(error instanceof TransferError)) throw error
    if (error.kind === 'aborted') {
      throw Interrupted.of(stop.signal, 'stopped before the end; continue with `--resume`')
    }
    const { target } = args
    if (error.code === 'authn' && target.kind === 'service') context.printError(tokenHint(target))
    throw new CliError(1, printable(error.message))
  } finally {
    stop.dispose()
  }
}

async function connect<Result>(
  { target, encryptionKey, mustExist }: TransferArguments & { readonly mustExist: boolean },
  context: CliContext,
  signal: AbortSignal,
  use: (service: Service, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { clock, fetch } = context
  const options = { clock, signal, encryptionKey }
  if (target.kind === 'service') {
    const { url, token } = target
    return use(new Service({ ...options, fetch, url, token, name: displayUrl(url) }), signal)
  }
  if (mustExist) await checkExists(target)
  return withEngine(target, context, (hw) => {
    const service = new Service({
      ...options,
      fetch: createHandler(hw, { auth: 'none' }),
      url: IN_PROCESS_URL,
      name: 'the storage',
      restoreStream: ({ basin, name }, restored) => hw.restoreStream({ basin, stream: name }, restored),
    })
    return use(service, signal)
  })
}

/** Formats counts: `2 basins, 1 stream, 12,345 records`. */
export function transferSummary({ basins, streams, records }: ExportCounts): string {
  return [countText(basins, 'basin'), countText(streams, 'stream'), countText(records, 'record')].join(', ')
}
