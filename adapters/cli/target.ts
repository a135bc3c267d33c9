import { readFileSync } from 'node:fs'
import { TOKEN_CHARACTERS_MAX } from '../../src/engine/access/tokens.ts'
import { type Headwater, HeadwaterError } from '../../src/index.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { type ConnectOptions, connect } from '../client/index.ts'
import { withValue } from './command.ts'
import { type CliContext, stopSignal } from './context.ts'
import { readContexts } from './contexts.ts'
import { CliError, printable, quoteArg, quotePath, redact, validateArgument } from './errors.ts'
import { ROOT_TOKEN_VARIABLE } from './root-token.ts'
import { Server } from './server.ts'
import {
  checkExists,
  STORAGE_DEFINITIONS,
  type StorageLocation,
  type StorageValues,
  storageLocation,
  withEngine,
} from './storage-location.ts'

const TOKEN_VARIABLE = 'HEADWATER_TOKEN'
const URL_VARIABLE = 'HEADWATER_URL'
const CONTEXT_VARIABLE = 'HEADWATER_CONTEXT'
/** `s2` for the hosted service. */
const PREFIX_VARIABLE = 'HEADWATER_HEADER_PREFIX'
const KEY_VARIABLE = 'HEADWATER_ENCRYPTION_KEY'
const DEFAULT_URL = 'http://127.0.0.1:8787'

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

export const TARGET_DEFINITIONS = {
  url: withValue('URL', `URL of the server, such as ${DEFAULT_URL}`, { isShared: true }),
  token: withValue('TOKEN', 'Access token for the server', { isShared: true }),
  context: withValue('NAME', 'Server and token of `headwater login NAME`', { isShared: true }),
  storage: {
    ...STORAGE_DEFINITIONS.storage,
    description: 'Storage instead of a server: ./data, sqlite:FILE or postgres://HOST/DATABASE',
    isShared: true,
  },
  dir: { ...STORAGE_DEFINITIONS.dir, isShared: true },
} as const

/** The option of commands that read or write records. */
export const KEY_DEFINITION = {
  'encryption-key': withValue(
    'KEY',
    `Key of encrypted streams: 32 bytes in base64. Default: ${KEY_VARIABLE}`,
    { isShared: true },
  ),
  'encryption-key-file': withValue('FILE', 'File with that key', { isShared: true }),
} as const

export interface TargetValues extends StorageValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly context?: string | undefined
}

/** @throws CliError with exit code 2. */
export function parseTarget(values: TargetValues, env: CliContext['env']): CliTarget {
  const { url, token, dir, context } = values
  const location = storageLocation(values)
  const option = location === undefined ? '--url' : dir === undefined ? '--storage' : '--dir'
  for (const [name, value] of Object.entries({ url, context, token })) {
    const isAllowed = location === undefined && (name !== 'context' || url === undefined)
    if (value === undefined || isAllowed) continue
    const reason = name === 'token' ? ': a storage needs no token' : ''
    throw new CliError(2, `\`${option}\` cannot be combined with \`--${name}\`${reason}`)
  }
  if (location !== undefined) return location
  if (url !== undefined) return serverAt(url, '`--url`', token, env)
  const named = context ?? (env[URL_VARIABLE] ? undefined : env[CONTEXT_VARIABLE] || undefined)
  if (named === undefined && env[URL_VARIABLE]) return serverAt(env[URL_VARIABLE], URL_VARIABLE, token, env)
  const { contexts, current } = readContexts(env)
  const name = named ?? current
  const used = name !== undefined && Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (named !== undefined && used === undefined) {
    const source = context === undefined ? ` of ${CONTEXT_VARIABLE}` : ''
    const known = Object.keys(contexts).join(', ') || 'there are none'
    throw new CliError(
      2,
      `unknown context ${quoteArg(named)}${source}; expected one of \`headwater contexts\`: ${known}`,
    )
  }
  if (used === undefined) return serverAt(DEFAULT_URL, URL_VARIABLE, token, env)
  const source = `the context ${printable(name!)}`
  const given = token === undefined ? ([source, used.token] as const) : (['`--token`', token] as const)
  // Tokens of variables are for other servers.
  return { kind: 'service', url: serviceUrl(used.url, source), ...accessToken([given]) }
}

/** Returns a server with the token that the user has given. @throws CliError with exit code 2. */
export function serviceTarget(url: string, token: string | undefined): ServiceTarget {
  return { kind: 'service', url, ...accessToken([['the input', token]]) }
}

function serverAt(url: string, source: string, token: string | undefined, env: CliContext['env']): CliTarget {
  return serverWith(url, source, [
    ['`--token`', token],
    [TOKEN_VARIABLE, env[TOKEN_VARIABLE] || undefined],
    [ROOT_TOKEN_VARIABLE, env[ROOT_TOKEN_VARIABLE] || undefined],
  ])
}

/**
 * Returns a server with the first token that is given, and without one if none is.
 *
 * @throws CliError with exit code 2.
 */
export function serverWith(url: string, source: string, tokens: readonly TokenSource[]): ServiceTarget {
  return { kind: 'service', url: serviceUrl(url, source), ...accessToken(tokens) }
}

/** An option or a variable, and its value. */
type TokenSource = readonly [name: string, token: string | undefined]

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

/** Checked here because `Headers` would quote an invalid token in its error. */
function accessToken(sources: readonly TokenSource[]): Pick<ServiceTarget, 'token' | 'tokenSource'> {
  const [name, token] = sources.find(([, value]) => value !== undefined) ?? []
  if (token === undefined) return { token: undefined, tokenSource: undefined }
  if (!/^[!-~]+$/.test(token) || token.length > TOKEN_CHARACTERS_MAX) {
    throw new CliError(
      2,
      `${name} must be 1 to ${TOKEN_CHARACTERS_MAX.toLocaleString('en-US')} visible ASCII characters ` +
        'without spaces',
    )
  }
  return { token, tokenSource: name }
}

interface KeyValues {
  readonly 'encryption-key'?: string | undefined
  readonly 'encryption-key-file'?: string | undefined
}

/**
 * Returns the key of the options or of the variable.
 *
 * @throws CliError with exit code 2, and with 1 for a file that cannot be read.
 */
export function encryptionKey(
  { 'encryption-key': option, 'encryption-key-file': file }: KeyValues,
  env: CliContext['env'],
): string | undefined {
  if (option !== undefined && file !== undefined) {
    throw new CliError(2, '`--encryption-key` cannot be combined with `--encryption-key-file`')
  }
  const [name, given] =
    file !== undefined
      ? ['`--encryption-key-file`', keyOfFile(file)]
      : option !== undefined
        ? ['`--encryption-key`', option]
        : [KEY_VARIABLE, env[KEY_VARIABLE]]
  const key = given?.trim()
  if (!key) return undefined
  validateArgument(() => new EncryptionKey(key).bytes, name)
  return key
}

function keyOfFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new CliError(1, `cannot read ${quotePath(path)}: ${redact((error as Error).message, path)}`)
  }
}

/** Explains the rejection of a request by its access token. */
function tokenHint({ tokenSource }: ServiceTarget): string {
  return tokenSource === undefined
    ? 'No access token was given; set HEADWATER_TOKEN, or use `headwater login`'
    : `The access token of ${tokenSource} is not valid`
}

interface Use {
  readonly target: CliTarget
  /** Refuses a storage that does not exist yet. Default true. */
  readonly mustExist?: boolean | undefined
}

interface ConnectionOptions extends Pick<ConnectOptions, 'retries' | 'resumes' | 'signal'> {
  /** Ends the connection, besides the user. */
  readonly giveUp?: AbortSignal | undefined
  /** Receives a description of the failure before a request is repeated. */
  readonly onRetry?: ((failure: string) => void) | undefined
}

/** The storage or server that a command works with. */
export interface Connected {
  /** Aborts when the user stops the command. */
  readonly signal: AbortSignal
  /** Describes an error of a server; undefined for a storage. */
  readonly describe: ((error: HeadwaterError) => string) | undefined
}

/**
 * Runs a command on its target: a server, or a storage that is opened for that time. By default a request to
 * a server is sent once. When the user stops the command, requests to a server are aborted.
 */
export async function withHeadwater<Result>(
  { target, mustExist = true }: Use,
  context: CliContext,
  use: (hw: Headwater, connected: Connected) => Promise<Result>,
  options?: ConnectionOptions,
): Promise<Result> {
  const stop = stopSignal(context)
  const { signal } = stop
  let server: Server | undefined
  try {
    if (mustExist && target.kind !== 'service') await checkExists(target)
    return await withTarget(target, context, { retries: 0, signal, ...options }, (hw, reached) => {
      server = reached
      return use(hw, { signal, describe: server?.describe })
    })
  } catch (error) {
    if (HeadwaterError.is(error) && signal.aborted) throw signal.reason
    const isOfServer = server !== undefined && HeadwaterError.is(error)
    const reported = isOfServer ? new CliError(1, server!.describe(error)) : error
    if (target.kind === 'service') {
      if ((error as { code?: unknown }).code === 'authn') context.printError(tokenHint(target))
      if (server?.isRefused && target.url === DEFAULT_URL) {
        context.printError('Start a server with `headwater serve`, or open a directory with `--storage`')
      }
    }
    throw reported
  } finally {
    stop.dispose()
  }
}

/** Connects to a server, or opens a storage, and closes it after the use. */
export async function withTarget<Result>(
  target: CliTarget,
  context: CliContext,
  { onRetry, giveUp, signal, ...options }: ConnectionOptions,
  use: (hw: Headwater, server: Server | undefined) => Promise<Result>,
): Promise<Result> {
  if (target.kind !== 'service') return withEngine(target, context, (hw) => use(hw, undefined))
  const { url, token } = target
  const { clock, http2 = false } = context
  const server = new Server(url, context.fetch)
  const hw = await connect({
    url,
    token,
    headerPrefix: context.env[PREFIX_VARIABLE] === 's2' ? 's2' : 'svc',
    fetch: server.fetch,
    http2,
    clock,
    defaultRetention: 'server',
    onRetry: onRetry && ((error) => onRetry(server.describe(error))),
    signal: giveUp === undefined ? signal : AbortSignal.any([giveUp, ...(signal ? [signal] : [])]),
    ...options,
  })
  try {
    return await use(hw, server)
  } finally {
    await hw.close()
  }
}
