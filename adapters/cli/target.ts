import { readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { TOKEN_CHARACTERS_MAX } from '../../src/engine/access/tokens.ts'
import { type Headwater, HeadwaterError } from '../../src/index.ts'
import { type ConnectOptions, connect } from '../client/index.ts'
import { type CliContext, stopSignal } from './context.ts'
import { CliError, printable, quoteArg, quotePath } from './errors.ts'
import { Server } from './server.ts'
import {
  checkExists,
  openEngine,
  type StorageLocation,
  type StorageOptions,
  storageLocation,
} from './storage.ts'

export const DEFAULT_URL = 'http://127.0.0.1:8787'

export const ROOT_TOKEN_VARIABLE = 'HEADWATER_ROOT_TOKEN'

/** The target of a command: a service, or a storage that the command opens. */
export type CliTarget = ServiceTarget | StorageLocation

export interface ServiceTarget {
  readonly kind: 'service'
  /** The address without a trailing slash and without `/v1`. */
  readonly url: string
  /** Undefined sends none, for a service without authentication. */
  readonly token: string | undefined
  /** The option or the variable of the token. */
  readonly tokenSource: string | undefined
}

export interface TargetOptions extends StorageOptions {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly context?: string | undefined
}

/** @throws CliError with exit code 2. */
function parseTarget(options: TargetOptions, env: CliContext['env']): CliTarget {
  const { url, token, context } = options
  const location = storageLocation(options)
  if (location !== undefined) return location
  const tokens: readonly TokenSource[] = [
    ['`--token`', token],
    ['HEADWATER_TOKEN', env.HEADWATER_TOKEN || undefined],
    [ROOT_TOKEN_VARIABLE, env[ROOT_TOKEN_VARIABLE] || undefined],
  ]
  if (url !== undefined) return serverWith(url, '`--url`', tokens)
  if (context !== undefined) return serverOfContext(context, '', token, env)
  const { HEADWATER_URL: variable, HEADWATER_CONTEXT: named } = env
  if (variable) return serverWith(variable, 'HEADWATER_URL', tokens)
  if (named) return serverOfContext(named, ' of HEADWATER_CONTEXT', token, env)
  const { current } = readContexts(env)
  if (current !== undefined) return serverOfContext(current, '', token, env)
  return serverWith(DEFAULT_URL, 'HEADWATER_URL', tokens)
}

/** Returns the server of a context. Tokens of variables are for other servers. */
function serverOfContext(
  name: string,
  source: string,
  token: string | undefined,
  env: CliContext['env'],
): ServiceTarget {
  const { contexts } = readContexts(env)
  if (!Object.hasOwn(contexts, name)) {
    const known = Object.keys(contexts).join(', ') || 'there are none'
    throw new CliError(
      2,
      `unknown context ${quoteArg(name)}${source}; expected one of \`headwater contexts\`: ${known}`,
    )
  }
  const place = `the context ${printable(name)}`
  const { url, token: stored } = contexts[name]!
  return serverWith(url, place, [
    ['`--token`', token],
    [place, stored],
  ])
}

/** A server with its access token. */
interface ServerContext {
  readonly url: string
  /** Undefined for a server without authentication. */
  readonly token?: string | undefined
}

/** The servers that the user has logged in to, by name. */
export interface Contexts {
  /** The name of the one that is used by default. */
  readonly current?: string | undefined
  readonly contexts: Readonly<Record<string, ServerContext>>
}

/** Returns the file of the contexts, undefined if the user has no configuration directory. */
function fileOf({ XDG_CONFIG_HOME, APPDATA, HOME }: CliContext['env']): string | undefined {
  const directory = XDG_CONFIG_HOME || APPDATA || (HOME && join(HOME, '.config'))
  return directory ? join(directory, 'headwater', 'contexts.json') : undefined
}

/** Reads the contexts. There are none if the file does not exist. @throws CliError for a damaged file. */
export function readContexts(env: CliContext['env']): Contexts {
  const file = fileOf(env)
  if (file === undefined) return { contexts: {} }
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { contexts: {} }
    throw new CliError(1, `cannot read ${quotePath(file)}: ${printable((error as Error).message)}`)
  }
  try {
    const stored = JSON.parse(text) as Contexts
    if (Object.values(stored.contexts).every(({ url }) => typeof url === 'string')) return stored
  } catch {
    // The message of the parser would quote the file, and so a token.
  }
  throw new CliError(1, `${quotePath(file)} is not a file of contexts; remove it and log in again`)
}

/** Replaces the file of the contexts, which only the user can read. Resolves to its path. */
export async function writeContexts(contexts: Contexts, env: CliContext['env']): Promise<string> {
  const file = fileOf(env)
  if (file === undefined) {
    throw new CliError(1, 'there is no configuration directory; set HOME or XDG_CONFIG_HOME')
  }
  const temporary = `${file}.${process.pid}`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await rm(temporary, { force: true })
    await writeFile(temporary, `${JSON.stringify(contexts, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw new CliError(1, `cannot write ${quotePath(file)}: ${printable((error as Error).message)}`)
  }
  return file
}

/** An option or a variable, and its value. */
type TokenSource = readonly [name: string, token: string | undefined]

/**
 * Returns a server with the first token that is given, and without one if none is.
 *
 * @throws CliError with exit code 2.
 */
export function serverWith(url: string, source: string, tokens: readonly TokenSource[]): ServiceTarget {
  const [tokenSource, token] = tokens.find(([, value]) => value !== undefined) ?? []
  // Checked here because `Headers` would quote an invalid token in its error.
  if (token !== undefined && (!/^[!-~]+$/.test(token) || token.length > TOKEN_CHARACTERS_MAX)) {
    const limit = TOKEN_CHARACTERS_MAX.toLocaleString('en-US')
    throw new CliError(2, `${tokenSource} must be 1 to ${limit} visible ASCII characters without spaces`)
  }
  return { kind: 'service', url: serviceUrl(url, source), token, tokenSource }
}

/** Errors do not quote the URL: it may contain a password. */
function serviceUrl(text: string, name: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new CliError(2, `${name} must be an HTTP URL such as ${DEFAULT_URL}`)
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new CliError(2, `${name} must not contain a user name, a password, a query or a fragment`)
  }
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\/v1$/, '')}`
}

export interface UseOptions extends Pick<ConnectOptions, 'retries' | 'resumes' | 'signal'> {
  /** Refuses a storage that does not exist yet. Default true. */
  readonly mustExist?: boolean | undefined
  /** Ends the connection, besides the user. */
  readonly giveUp?: AbortSignal | undefined
  /** Receives a description of the failure before a request is repeated. */
  readonly onRetry?: ((failure: string) => void) | undefined
}

/** The storage or server that a command works with. */
export interface Connected {
  /** Undefined for a storage. */
  readonly server: Server | undefined
  /** Aborts when the user stops the command. */
  readonly signal: AbortSignal
}

/** Runs a command on the server or the storage that its options name. */
export function withHeadwater<Result>(
  options: TargetOptions,
  context: CliContext,
  use: (hw: Headwater, connected: Connected) => Promise<Result>,
  useOptions?: UseOptions,
): Promise<Result> {
  return withTarget(parseTarget(options, context.env), context, use, useOptions)
}

/**
 * Runs a command on its target: a server, or a storage that is opened for that time. By default a request to
 * a server is sent once. When the user stops the command, requests to a server are aborted.
 */
export async function withTarget<Result>(
  target: CliTarget,
  context: CliContext,
  use: (hw: Headwater, connected: Connected) => Promise<Result>,
  { mustExist = true, ...options }: UseOptions = {},
): Promise<Result> {
  const { signal, dispose } = stopSignal(context)
  let server: Server | undefined
  try {
    if (mustExist && target.kind !== 'service') await checkExists(target)
    return await connected(target, context, { retries: 0, signal, ...options }, (hw, reached) => {
      server = reached
      return use(hw, { server, signal })
    })
  } catch (error) {
    const isOfEngine = HeadwaterError.is(error)
    if (isOfEngine && signal.aborted) throw signal.reason
    if (target.kind !== 'service' || server === undefined) throw error
    const reported = isOfEngine ? new CliError(1, server.describe(error)) : error
    const { code } = (isOfEngine ? error : ((error as Error).cause ?? {})) as { readonly code?: unknown }
    if (code === 'authn') {
      context.printError(
        target.tokenSource === undefined
          ? 'No access token was given; set HEADWATER_TOKEN, or use `headwater login`'
          : `The access token of ${target.tokenSource} is not valid`,
      )
    }
    if (server.isRefused && target.url === DEFAULT_URL) {
      context.printError('Start a server with `headwater serve`, or open a directory with `--storage`')
    }
    throw reported
  } finally {
    dispose()
  }
}

/** Connects to a server, or opens a storage, and closes it after the use. */
export async function connected<Result>(
  target: CliTarget,
  context: CliContext,
  { onRetry, giveUp, signal, ...options }: Omit<UseOptions, 'mustExist'>,
  use: (hw: Headwater, server: Server | undefined) => Promise<Result>,
): Promise<Result> {
  const { clock, http2 = false, env, printError } = context
  if (target.kind !== 'service') {
    const hw = await openEngine(target, context, (error) => printError(printable(String(error))))
    return use(hw, undefined).finally(() => hw.close())
  }
  const server = new Server(target, context.fetch)
  const signals = [giveUp, signal].filter((one) => one !== undefined)
  const hw = await connect({
    url: target.url,
    token: target.token,
    // `s2` for the hosted service.
    headerPrefix: env.HEADWATER_HEADER_PREFIX === 's2' ? 's2' : 'svc',
    fetch: server.fetch,
    http2,
    clock,
    defaultRetention: 'server',
    onRetry: onRetry && ((error) => onRetry(server.describe(error))),
    signal: AbortSignal.any(signals),
    ...options,
  })
  return use(hw, server).finally(() => hw.close())
}
