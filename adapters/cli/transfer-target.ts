import type { Headwater } from '../../src/index.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../src/model/names.ts'
import {
  type ExportCounts,
  type NameFilter,
  parseNameFilter,
  Service,
  TransferError,
  type TransferFilter,
} from '../transfer/index.ts'
import { flag, type Values, withValue } from './command.ts'
import type { CliContext } from './context.ts'
import { CliError, Interrupted } from './errors.ts'
import { countText } from './progress.ts'
import {
  type CliTarget,
  type Connected,
  encryptionKey,
  KEY_DEFINITION,
  parseTarget,
  TARGET_DEFINITIONS,
  withHeadwater,
} from './target.ts'

/** The options that `export` and `import` have in common. */
export const TRANSFER_DEFINITIONS = {
  ...TARGET_DEFINITIONS,
  basin: withValue('NAME', 'Only this basin: NAME, or PREFIX* for all with this prefix'),
  stream: withValue('NAME', 'Only streams with this name, in the same form'),
  ...KEY_DEFINITION,
  resume: flag('Continue an interrupted transfer'),
  quiet: flag('No progress bar and no summary'),
} as const

export interface TransferArguments {
  readonly target: CliTarget
  readonly encryptionKey: string | undefined
  readonly filter: TransferFilter
  readonly resume: boolean
  readonly quiet: boolean
}

type TransferValues = Values<typeof TRANSFER_DEFINITIONS>

/** @throws CliError with exit code 2. */
export function parseTransferArguments(values: TransferValues, env: CliContext['env']): TransferArguments {
  return {
    target: parseTarget(values, env),
    encryptionKey: encryptionKey(values, env),
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
export function withService<Result>(
  args: TransferArguments & { readonly mustExist: boolean },
  context: CliContext,
  use: (service: Service, signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const transfer = async (hw: Headwater, { signal, describe }: Connected) => {
    const { encryptionKey } = args
    try {
      return await use(new Service(hw, { encryptionKey, signal, describe }), signal)
    } catch (error) {
      if (!(error instanceof TransferError) || error.kind !== 'aborted') throw error
      throw Interrupted.of(signal, 'stopped before the end; continue with `--resume`')
    }
  }
  return withHeadwater(args, context, transfer, TRANSFER_CONNECTION)
}

/** Requests are repeated, and the signal does not close the client: changes are undone after it. */
export const TRANSFER_CONNECTION = { retries: 5, signal: undefined } as const

/** Formats counts: `2 basins, 1 stream, 12,345 records`. */
export function transferSummary({ basins, streams, records }: ExportCounts): string {
  return [countText(basins, 'basin'), countText(streams, 'stream'), countText(records, 'record')].join(', ')
}
