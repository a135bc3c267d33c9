import { parseArgs } from 'citty'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  streamNameProblem,
  streamPrefixProblem,
} from '../../src/model/names.ts'
import { nameFilter, type TransferFilter } from '../transfer/index.ts'
import { checkArguments } from './check-arguments.ts'
import type { CliContext } from './cli-context.ts'
import { CliError, refusingUsage } from './failure.ts'
import { type TokenPlace, tokenPlace } from './token-place.ts'
import { EXPORT_DEFINITIONS, IMPORT_DEFINITIONS } from './transfer-definitions.ts'

const KEY_VARIABLE = 'HEADWATER_ENCRYPTION_KEY'

export interface TransferArguments {
  readonly place: TokenPlace
  readonly encryptionKey: string | undefined
  readonly filter: TransferFilter
  readonly resume: boolean
  readonly quiet: boolean
}

export interface ExportArguments extends TransferArguments {
  /** Undefined: standard output. */
  readonly out: string | undefined
  readonly gzip: boolean
}

export interface ImportArguments extends TransferArguments {
  /** Undefined: standard input. */
  readonly file: string | undefined
}

/** Throws, like its neighbour, a {@link CliError} with exit code 2. */
export function parseExportArguments(args: readonly string[], { env }: CliContext): ExportArguments {
  // A hyphen alone is a value like any other here.
  const given = args.flatMap((arg, i) => (arg === '-' && args[i - 1] === '--out' ? [] : [arg]))
  const isStandardOutput = given.length < args.length
  const checked = isStandardOutput ? given.map((arg) => (arg === '--out' ? '--out=-' : arg)) : given
  checkArguments(checked, EXPORT_DEFINITIONS, 'export')
  const parsed = parseArgs<typeof EXPORT_DEFINITIONS>([...checked], EXPORT_DEFINITIONS)
  if (parsed.out === '') throw new CliError(2, '--out must not be empty')
  const out = parsed.out === '-' ? undefined : parsed.out
  const common = commonOf(parsed, env)
  if (common.resume && out === undefined) {
    throw new CliError(2, '--resume needs --out FILE: standard output cannot be gone on with')
  }
  return { ...common, out, gzip: parsed.gzip || (out?.endsWith('.gz') ?? false) }
}

export function parseImportArguments(args: readonly string[], { env }: CliContext): ImportArguments {
  const given = args.filter((arg) => arg !== '-')
  checkArguments(given, IMPORT_DEFINITIONS, 'import', { name: 'FILE', least: 0, most: 1 })
  const parsed = parseArgs<typeof IMPORT_DEFINITIONS>([...given], IMPORT_DEFINITIONS)
  const isFile = parsed.file !== undefined
  if (parsed.file === '') throw new CliError(2, 'FILE must not be empty')
  if (args.length - given.length > (isFile ? 0 : 1))
    throw new CliError(2, 'import takes one FILE, but more was given')
  return { ...commonOf(parsed, env), file: parsed.file }
}

interface CommonValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly dir?: string | undefined
  readonly basin?: string | undefined
  readonly stream?: string | undefined
  readonly 'encryption-key'?: string | undefined
  readonly resume: boolean
  readonly quiet: boolean
}

function commonOf(values: CommonValues, env: CliContext['env']): TransferArguments {
  const { url, token, dir, resume, quiet } = values
  return {
    place: tokenPlace({ url, token, directory: dir }, env),
    encryptionKey: keyOf(values['encryption-key'], env),
    filter: filterOf(values),
    resume,
    quiet,
  }
}

function keyOf(option: string | undefined, env: CliContext['env']): string | undefined {
  const name = option === undefined ? KEY_VARIABLE : '--encryption-key'
  const key = (option ?? env[KEY_VARIABLE])?.trim()
  if (!key) return undefined
  refusingUsage(() => new EncryptionKey(key).bytes, name)
  return key
}

function filterOf({ basin = '*', stream = '*' }: CommonValues): TransferFilter {
  const [basins, streams] = [nameFilter(basin), nameFilter(stream)]
  const problem =
    'exact' in basins ? basinNameProblem(basins.exact) : basinPrefixProblem(basins.prefix, 'prefix')
  if (problem !== undefined) throw new CliError(2, `--basin: ${problem}`)
  const streamProblem =
    'exact' in streams ? streamNameProblem(streams.exact) : streamPrefixProblem(streams.prefix, 'prefix')
  if (streamProblem !== undefined) throw new CliError(2, `--stream: ${streamProblem}`)
  return { basins, streams }
}
