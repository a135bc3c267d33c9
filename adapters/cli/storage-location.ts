import { stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { type Engine, open, type Storage } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import { withValue } from './command.ts'
import type { CliContext, StorageFactory } from './context.ts'
import { CliError, printable, quoteArg, quotePath } from './errors.ts'
import { lazyCipher, optionalCiphers } from './optional-ciphers.ts'

/** The location of a storage. */
export type StorageLocation =
  | { readonly kind: 'memory' }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'sqlite'; readonly path: string }
  | { readonly kind: 'database'; readonly url: string }

export const STORAGE_DEFINITIONS = {
  storage: withValue(
    'STORAGE',
    'Storage: memory, a directory such as ./data, sqlite:FILE, or postgres://HOST/DATABASE',
  ),
  dir: withValue('DIRECTORY', 'Same as --storage, for a directory'),
} as const

export interface StorageValues {
  readonly storage?: string | undefined
  readonly dir?: string | undefined
}

/**
 * Returns the location that `--storage` or `--dir` names, undefined if neither is given.
 *
 * @throws CliError with exit code 2.
 */
export function storageLocation({ storage, dir }: StorageValues): StorageLocation | undefined {
  if (storage !== undefined && dir !== undefined) {
    throw new CliError(2, '`--dir` cannot be combined with `--storage`: both name the storage')
  }
  if (storage !== undefined) return parseStorageLocation(storage)
  if (dir === '') throw new CliError(2, '`--dir` must not be empty')
  return dir === undefined ? undefined : { kind: 'directory', path: dir }
}

/**
 * Parses a value of `--storage`. A bare word other than `memory` is an error, not a directory: a misspelled
 * `memory` would otherwise create one.
 */
function parseStorageLocation(text: string): StorageLocation {
  if (text === 'memory') return { kind: 'memory' }
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'file') return { kind: 'directory', path: filePath(text) }
  if (scheme === 'sqlite') return { kind: 'sqlite', path: filePath(text) }
  if (scheme === 'postgres' || scheme === 'postgresql') return { kind: 'database', url: databaseUrl(text) }
  // Only the scheme is quoted: the rest of a URL may contain a password.
  if (scheme !== undefined) throw unknownStorage(`${scheme}:`)
  if (/^\.{1,2}$|[/\\]/.test(text)) return { kind: 'directory', path: text }
  throw unknownStorage(text)
}

/** The path of a `file:` or `sqlite:` URL. As in SQLite, the scheme may be followed by a relative path. */
function filePath(url: string): string {
  const [scheme = '', ...parts] = url.split(':')
  const rest = parts.join(':')
  try {
    if (/[?#]/.test(rest)) throw new Error('a query or a fragment is not supported')
    const path = rest.startsWith('//') ? fileURLToPath(`file:${rest}`) : decodeURIComponent(rest)
    if (path === '') throw new Error('the path is empty')
    return path
  } catch (error) {
    throw new CliError(
      2,
      `invalid \`${scheme.toLowerCase()}:\` URL in \`--storage\`: ${printable((error as Error).message)}`,
    )
  }
}

/** The error does not quote the URL: it may contain a password. */
function databaseUrl(text: string): string {
  if (!URL.canParse(text)) {
    throw new CliError(2, 'invalid URL in `--storage`; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE')
  }
  return text
}

function unknownStorage(text: string): CliError {
  return new CliError(
    2,
    `unknown storage ${quoteArg(text)}; expected \`memory\`, a directory such as \`./data\`, ` +
      'or a URL such as `file:./data`, `sqlite:streams.db` or `postgres://localhost/app`',
  )
}

/** Describes a location in one line: `directory ./data`. */
export function describeStorage(location: StorageLocation): string {
  switch (location.kind) {
    case 'memory':
      return 'memory (lost when the process ends)'
    case 'directory':
      return `directory ${printable(location.path)}`
    case 'sqlite':
      return `SQLite in ${printable(location.path)}`
    case 'database': {
      const { host, pathname } = new URL(location.url)
      return `PostgreSQL at ${printable(host + pathname)}`
    }
  }
}

/** Opens an engine that owns the storage, runs `use` and closes the engine. */
export async function withEngine<Result>(
  location: StorageLocation,
  context: CliContext,
  use: (hw: Engine) => Promise<Result>,
): Promise<Result> {
  const onBackgroundError = (error: unknown) => context.printError(printable(String(error)))
  const { storages, clock } = context
  const hw = await open({
    storage: storageOf(location, storages),
    clock,
    ciphers: [lazyCipher()],
    usage: usageMetrics(),
    onBackgroundError,
  })
  try {
    return await use(hw)
  } finally {
    await hw.close()
  }
}

/** Opens an engine that owns the storage, for a server. Creates a missing directory. */
export async function openEngine(
  { location }: { readonly location: StorageLocation },
  { storages, clock }: Pick<CliContext, 'storages' | 'clock'>,
  onBackgroundError: (error: unknown) => void,
): Promise<Engine> {
  const ciphers = await optionalCiphers(onBackgroundError)
  const storage = storageOf(location, storages)
  return open({ storage, clock, ciphers, usage: usageMetrics(), onBackgroundError })
}

function storageOf(location: StorageLocation, storages: StorageFactory): Storage {
  switch (location.kind) {
    case 'memory':
      return storages.memory()
    case 'directory':
      return storages.filesystem(location.path)
    case 'sqlite':
      return storages.sqlite(location.path)
    case 'database':
      return storages.postgres(location.url)
  }
}

/**
 * Rejects a location that cannot hold data yet, for commands that read existing data: opening a mistyped
 * directory would create it, and it would look like an empty storage.
 *
 * @throws CliError
 */
export async function checkExists(location: StorageLocation): Promise<void> {
  if (location.kind === 'memory') {
    throw new CliError(2, '`--storage memory` is empty in every new process; name a directory')
  }
  if (location.kind === 'database') return
  const { kind, path } = location
  const about = await stat(path).catch(() => undefined)
  const what = kind === 'sqlite' ? 'file' : 'directory'
  if (about === undefined) throw new CliError(1, `${what} ${quotePath(path)} does not exist`)
  if (kind === 'directory' && !about.isDirectory())
    throw new CliError(1, `${quotePath(path)} is not a directory`)
}
