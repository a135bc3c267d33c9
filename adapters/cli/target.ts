import { TOKEN_CHARACTERS_MAX } from '../../src/engine/service/tokens/token-format.ts'
import type { Engine } from '../../src/index.ts'
import { EncryptionKey } from '../../src/model/encryption-key.ts'
import { Client } from './client.ts'
import { type CliContext, stopSignal } from './context.ts'
import { CliError, ConnectionError, redact, ServiceError, validateArgument } from './errors.ts'
import { ROOT_TOKEN_VARIABLE } from './root-token.ts'
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
const KEY_VARIABLE = 'HEADWATER_ENCRYPTION_KEY'
const DEFAULT_URL = 'http://127.0.0.1:8787'
/** Never requested: the handler of an engine in this process is called without a socket. */
export const IN_PROCESS_URL = 'http://localhost'

/** What a command works on: a service, or a storage that it opens itself. */
export type Target = ServiceTarget | StorageLocation

interface ServiceTarget {
  readonly kind: 'service'
  /** Without a trailing slash and without `/v1`. */
  readonly url: string
  /** Undefined sends none, for a service without authentication. */
  readonly token: string | undefined
  /** The option or the variable of the token. */
  readonly tokenSource: string | undefined
}

export const TARGET_DEFINITIONS = {
  url: {
    type: 'string',
    description: `URL of the server. Default: ${URL_VARIABLE}, else ${DEFAULT_URL}`,
  },
  token: { type: 'string', description: 'Access token for the server; see below' },
  storage: {
    ...STORAGE_DEFINITIONS.storage,
    description: 'Storage instead of a server: ./data or postgres://HOST/DATABASE',
  },
  dir: STORAGE_DEFINITIONS.dir,
} as const

/** Of commands that read or write records. */
export const KEY_DEFINITION = {
  'encryption-key': {
    type: 'string',
    description: `Key of encrypted streams: 32 bytes in base64. Default: ${KEY_VARIABLE}`,
  },
} as const

export const TARGET_NOTES = [
  'The access token is taken from --token, HEADWATER_TOKEN or HEADWATER_ROOT_TOKEN, in this order. Prefer',
  'the variables: other users of the machine can see options in the process list.',
  '--storage needs no token. A directory must not be open in another process.',
]

export interface TargetValues extends StorageValues {
  readonly url?: string | undefined
  readonly token?: string | undefined
}

/** @throws CliError with exit code 2. */
export function parseTarget(values: TargetValues, env: CliContext['env']): Target {
  const { url, token, dir } = values
  const location = storageLocation(values)
  if (location === undefined) {
    const [name, text] =
      url === undefined ? [URL_VARIABLE, env[URL_VARIABLE] || DEFAULT_URL] : ['`--url`', url]
    return { kind: 'service', url: serviceUrl(text, name), ...accessToken(token, env) }
  }
  const option = dir === undefined ? '--storage' : '--dir'
  if (url !== undefined) throw new CliError(2, `\`${option}\` cannot be combined with \`--url\``)
  if (token !== undefined) {
    throw new CliError(2, `\`${option}\` cannot be combined with \`--token\`: a storage needs no token`)
  }
  return location
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

/** Returns the URL of a service for messages. A long path may be a token. */
export function displayUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  if (pathname === '/') return origin
  const path = pathname.slice(1)
  return `${origin}/${redact(path, path)}`
}

/** Checked here because `Headers` would quote an invalid token in its error. */
function accessToken(
  option: string | undefined,
  env: CliContext['env'],
): Pick<ServiceTarget, 'token' | 'tokenSource'> {
  const sources = [
    ['`--token`', option],
    [TOKEN_VARIABLE, env[TOKEN_VARIABLE] || undefined],
    [ROOT_TOKEN_VARIABLE, env[ROOT_TOKEN_VARIABLE] || undefined],
  ] as const
  const [name, token] = sources.find(([, value]) => value !== undefined) ?? []
  if (token === undefined) return { token: undefined, tokenSource: undefined }
  if (!/^[!-~]+$/.test(token) || token.length > TOKEN_CHARACTERS_MAX) {
    throw new CliError(
      2,
      `${name} must be 1 to ${TOKEN_CHARACTERS_MAX.toLocaleString('en-US')} visible ASCII characters without spaces`,
    )
  }
  return { token, tokenSource: name }
}

/**
 * Returns the key of `--encryption-key` or its variable.
 *
 * @throws CliError with exit code 2.
 */
export function encryptionKey(option: string | undefined, env: CliContext['env']): string | undefined {
  const name = option === undefined ? KEY_VARIABLE : '`--encryption-key`'
  const key = (option ?? env[KEY_VARIABLE])?.trim()
  if (!key) return undefined
  validateArgument(() => new EncryptionKey(key).bytes, name)
  return key
}

/** Explains the rejection of a request by its access token. */
export function tokenHint({ tokenSource }: ServiceTarget): string {
  return tokenSource === undefined
    ? 'No access token was given; set HEADWATER_TOKEN'
    : `The access token of ${tokenSource} is not valid`
}

/** Returns a function that calls `load` once. */
function lazily<Value>(load: () => Promise<Value>): () => Promise<Value> {
  let loading: Promise<Value> | undefined
  return () => {
    loading ??= load()
    return loading
  }
}

interface Use {
  readonly target: Target
  /** Refuses a storage that does not exist yet. Default true. */
  readonly mustExist?: boolean
  readonly encryptionKey?: string | undefined
}

/**
 * Runs a command with a client of its target: a server, or a storage that is opened for that time, whose
 * engine is then given too. A signal stops the requests of the client.
 */
export async function withClient<Result>(
  { target, mustExist = true, encryptionKey }: Use,
  context: CliContext,
  use: (client: Client, engine: Engine | undefined) => Promise<Result>,
): Promise<Result> {
  const { clock } = context
  const stop = stopSignal(context)
  const options = { clock, encryptionKey, signal: stop.signal }
  try {
    if (target.kind !== 'service') {
      if (mustExist) await checkExists(target)
      return await withEngine(target, context, (hw) => {
        // Loaded for the first request: some commands make none.
        const handler = lazily(async () => {
          const { createHandler } = await import('../http/index.ts')
          return createHandler(hw, { auth: 'none', compression: false, retention: 'infinite' })
        })
        const fetch = async (request: Request) => (await handler())(request)
        return use(new Client({ ...options, fetch, url: IN_PROCESS_URL, name: 'the storage' }), hw)
      })
    }
    const { url, token } = target
    const { fetch } = context
    return await use(new Client({ ...options, fetch, url, token, name: displayUrl(url) }), undefined)
  } catch (error) {
    if (target.kind === 'service') {
      if (error instanceof ServiceError && error.code === 'authn') context.printError(tokenHint(target))
      if (error instanceof ConnectionError && error.isRefused && target.url === DEFAULT_URL) {
        context.printError('Start a server with `headwater serve`, or open a directory with `--storage`')
      }
    }
    throw error
  } finally {
    stop.dispose()
  }
}
