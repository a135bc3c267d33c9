import { stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { type CipherSuite, type Engine, open, type Storage } from '../../src/index.ts'
import { usageMetrics } from '../../src/usage/index.ts'
import type { BucketOptions, CliContext } from './context.ts'
import { CliError, printable, quoteArg, quotePath } from './errors.ts'

type Storages = CliContext['storages']

export interface StorageLocation {
  readonly kind: 'memory' | 'directory' | 'sqlite' | 'database' | 'bucket'
  /** The path of a directory or a file. */
  readonly path?: string
  /** A description in one line: `directory ./data`. */
  readonly text: string
  readonly open: (storages: Storages) => Storage
}

function directoryAt(path: string): StorageLocation {
  const text = `directory ${printable(path)}`
  return { kind: 'directory', path, text, open: (storages) => storages.filesystem(path) }
}

/**
 * Parses a value of `--storage`. A bare word other than `memory` is an error, not a directory: a misspelled
 * `memory` would otherwise create one.
 */
export function parseStorageLocation(text: string): StorageLocation {
  if (text === 'memory') {
    return { kind: 'memory', text: 'memory (lost when the process ends)', open: ({ memory }) => memory() }
  }
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(text)?.[1]?.toLowerCase()
  if (scheme === 'file') return directoryAt(filePath(text))
  if (scheme === 'sqlite') {
    const path = filePath(text)
    return { kind: 'sqlite', path, text: `SQLite in ${printable(path)}`, open: ({ sqlite }) => sqlite(path) }
  }
  if (scheme === 'postgres' || scheme === 'postgresql') {
    // The error does not quote the URL, nor does the description: it may contain a password.
    if (!URL.canParse(text)) throw invalidUrl('expected postgres://USER:PASSWORD@HOST:PORT/DATABASE')
    const { host, pathname } = new URL(text)
    const description = `PostgreSQL at ${printable(host + pathname)}`
    return { kind: 'database', text: description, open: ({ postgres }) => postgres(text) }
  }
  if (scheme === 's3') {
    const [location = '', query] = text.split('?')
    const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*)$/i.exec(location) ?? []
    if (bucket === '') throw invalidUrl('expected s3://BUCKET/PREFIX')
    const options = bucketOptions(new URLSearchParams(query))
    const description = `bucket ${printable(text)}`
    return { kind: 'bucket', text: description, open: ({ s3 }) => s3(bucket, prefix, options) }
  }
  if (scheme === undefined && /^\.{1,2}$|[/\\]/.test(text)) return directoryAt(text)
  // Only the scheme is quoted: the rest of a URL may contain a password.
  const unknown = scheme === undefined ? text : `${scheme}:`
  throw new CliError(
    2,
    `unknown storage ${quoteArg(unknown)}; expected \`memory\`, a directory such as \`./data\`, ` +
      'or a URL such as `file:./data`, `sqlite:streams.db`, `postgres://localhost/app` or `s3://bucket/app`',
  )
}

function bucketOptions(query: URLSearchParams): BucketOptions {
  const options: { -readonly [name in keyof BucketOptions]: BucketOptions[name] } = {}
  for (const [name, value] of query) {
    if (name === 'flushMs' && /^\d{1,6}$/.test(value)) options.flushMs = Number(value)
    else if (name === 'takeOver' && value === 'true') options.takeOver = true
    else if (name === 'cacheDirectory' && value !== '') options.cacheDirectory = value
    else {
      const expected = '`flushMs=MILLISECONDS`, `takeOver=true` or `cacheDirectory=DIRECTORY`'
      throw new CliError(2, `invalid ${quoteArg(name)} in the URL of the bucket; expected ${expected}`)
    }
  }
  return options
}

/** The path of a `file:` or `sqlite:` URL. As in SQLite, the scheme may be followed by a relative path. */
function filePath(url: string): string {
  const rest = url.slice(url.indexOf(':') + 1)
  try {
    if (/[?#]/.test(rest)) throw new Error('a query or a fragment is not supported')
    const path = rest.startsWith('//') ? fileURLToPath(`file:${rest}`) : decodeURIComponent(rest)
    if (path === '') throw new Error('the path is empty')
    return path
  } catch (error) {
    throw invalidUrl(printable((error as Error).message))
  }
}

function invalidUrl(problem: string): CliError {
  return new CliError(2, `invalid URL in \`--storage\`: ${problem}`)
}

/** Opens an engine that owns the storage. Creates a missing directory. */
export function openEngine(
  location: StorageLocation,
  { storages, clock }: Pick<CliContext, 'storages' | 'clock'>,
  onBackgroundError: (error: unknown) => void,
): Promise<Engine> {
  const storage = location.open(storages)
  return open({ storage, clock, ciphers: [lazyCipher()], usage: usageMetrics(), onBackgroundError })
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
  const { kind, path } = location
  if (path === undefined) return
  const about = await stat(path).catch(() => undefined)
  const what = kind === 'sqlite' ? 'file' : 'directory'
  if (about === undefined) throw new CliError(1, `${what} ${quotePath(path)} does not exist`)
  if (kind === 'directory' && !about.isDirectory()) {
    throw new CliError(1, `${quotePath(path)} is not a directory`)
  }
}

const CIPHER_PACKAGE = 'libsodium-wrappers'

/**
 * The cipher that the runtime does not have, AEGIS-256. It is loaded when it is first used, because loading
 * takes longer than most commands. Its package is optional: without it, requests that need the cipher fail
 * with an error that names the package.
 */
export function lazyCipher(
  resolve: (name: string) => string = createRequire(import.meta.url).resolve,
): CipherSuite {
  let missing: string | undefined
  try {
    resolve(CIPHER_PACKAGE)
  } catch {
    missing = `the package ${CIPHER_PACKAGE} is not installed`
  }
  let loading: Promise<CipherSuite> | undefined
  const suite = () => {
    loading ??= import('../aegis-256/index.ts').then(({ aegis256 }) => aegis256())
    return loading
  }
  return {
    name: 'aegis-256',
    ...(missing !== undefined && { missing }),
    seal: async (...args) => (await suite()).seal(...args),
    open: async (...args) => (await suite()).open(...args),
  }
}
