import { readFile, stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { dirname, resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { inspect } from 'node:util'
import { SYSTEM_STREAM_CONFIG } from '../../../src/core/config.ts'
import type { Engine, RetentionPolicy } from '../../../src/index.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { consolePage } from '../../console/page.ts'
import { isOrigin } from '../../http/cors.ts'
import type { RequestExchange } from '../../http/exchange.ts'
import { bearerToken } from '../../http/options.ts'
import { type NodeServer, type TlsIdentity, toNodeHandler } from '../../node/index.ts'
import { serveHandler } from '../../node/serve.ts'
import { command, flag, type Values, withValue } from '../command.ts'
import { type CliContext, stopSignal } from '../context.ts'
import { CliError, printable, quoteArg, quotePath, redact } from '../errors.ts'
import { type LogFormat, withRequestLog } from '../request-log.ts'
import {
  checkRootToken,
  establishRootToken,
  type GivenRootToken,
  givenRootToken,
  ROOT_TOKEN_VARIABLE,
  welcome,
} from '../root-token.ts'
import { SignIn } from '../sign-in.ts'
import {
  describeStorage,
  openEngine,
  STORAGE_DEFINITIONS,
  type StorageLocation,
  storageLocation,
} from '../storage-location.ts'
import { parseRetention } from '../times.ts'

const DEFAULT_DIRECTORY = './data'

const SERVE_DEFINITIONS = {
  port: withValue('PORT', 'TCP port; 0 selects a free one', { default: '8787', hasVariable: true }),
  host: withValue('HOST', 'Address to listen on', { default: '127.0.0.1', hasVariable: true }),
  storage: {
    ...STORAGE_DEFINITIONS.storage,
    description: `${STORAGE_DEFINITIONS.storage.description}. Default: ${DEFAULT_DIRECTORY}`,
  },
  dir: STORAGE_DEFINITIONS.dir,
  auth: flag('Disable authentication: anyone who can connect has full access', {
    default: true,
    hasVariable: true,
  }),
  'allow-origin': withValue(
    'ORIGINS',
    'Origins whose web pages may call the server, separated by commas; * for any. Default: any, or ' +
      'none with --no-auth',
    { hasVariable: true },
  ),
  'allowed-host': withValue(
    'HOST',
    'Name besides localhost and IP addresses that clients use for the server; may be repeated. ' +
      'Default: any, or none with --no-auth on a loopback address',
    { isRepeated: true, hasVariable: true },
  ),
  'root-token': withValue('TOKEN', 'Set the root token; see below'),
  'tls-cert': withValue('FILE', 'File with the TLS certificate and its chain, in PEM: serves https', {
    hasVariable: true,
  }),
  'tls-key': withValue('FILE', 'File with the private key of the certificate, in PEM', { hasVariable: true }),
  log: withValue('FORMAT', 'Log each request on a line of standard output', {
    choices: ['text', 'json'],
    hasVariable: true,
  }),
  retention: withValue(
    'DURATION',
    'How long streams keep records by default: 12h, 30d, ... or forever. Default: 7d',
    { hasVariable: true },
  ),
  'durable-streams-basin': withValue('BASIN', 'Basin that is served by the Durable Streams protocol', {
    default: 'durable-streams',
    hasVariable: true,
  }),
  'durable-streams-path': withValue('PATH', 'Path below which each path is a stream of that protocol', {
    default: '/v1/stream',
    hasVariable: true,
  }),
  'long-poll': withValue('SECONDS', 'How long a long poll of that protocol waits, at most 60. Default: 30', {
    hasVariable: true,
  }),
  'public-metrics': flag('Serve /metrics, for Prometheus, without an access token', { hasVariable: true }),
} as const

const SERVE_NOTES = [
  'Every request needs an access token unless --no-auth is given. The first start on a storage creates',
  'the root token, which has every permission, and prints it once. --root-token or the environment',
  'variable HEADWATER_ROOT_TOKEN sets it instead and replaces an earlier one: 16 to 1,024 visible ASCII',
  'characters. Prefer the variable: other users of the machine can see options in the process list.',
  'Every other option can be set by a variable, too: HEADWATER_ and its name in upper case, such as',
  'HEADWATER_PORT=9000, HEADWATER_TLS_CERT=cert.pem or HEADWATER_NO_AUTH=true. Options win.',
  '--retention applies to streams that requests create without one, in basins without a default. Existing',
  'streams keep theirs.',
  'Log lines have the time, method, path, basin, status and duration of a request, and no secrets. With',
  '--log json, standard output has only log lines.',
]

interface ServeArguments {
  readonly port: number
  readonly host: string
  readonly location: StorageLocation
  readonly auth: boolean
  /** The option `cors` of the handler; undefined is its default. */
  readonly allowedOrigins: true | readonly string[] | undefined
  /** The option `allowedHosts` of the handler. */
  readonly allowedHosts: readonly string[] | undefined
  readonly rootToken: string | undefined
  /** The files of certificate and key. */
  readonly tls: { readonly cert: string; readonly key: string } | undefined
  readonly log: LogFormat | undefined
  /** The retention of what requests create without one; undefined is the default of the handler. */
  readonly retention: RetentionPolicy | undefined
  readonly publicMetrics: boolean
  readonly durableStreams: {
    readonly basin: string
    readonly path: string
    readonly longPollMs: number | undefined
  }
}

function parse(parsed: Values<typeof SERVE_DEFINITIONS>, { env }: CliContext): ServeArguments {
  const { port, host, auth, log, retention, 'allow-origin': origins, 'root-token': rootToken } = parsed
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new CliError(2, `invalid port ${quoteArg(port)}; \`--port\` must be a number from 0 to 65535`)
  }
  if (host === '') throw new CliError(2, '`--host` must not be empty')
  const { dir, storage = dir === undefined ? env.HEADWATER_STORAGE || undefined : undefined } = parsed
  const location = storageLocation({ dir, storage }) ?? { kind: 'directory', path: DEFAULT_DIRECTORY }
  if (!auth && rootToken !== undefined) {
    throw new CliError(2, '`--root-token` cannot be combined with `--no-auth`, which requires no token')
  }
  const { 'durable-streams-basin': basin, 'durable-streams-path': path } = parsed
  if (basinNameProblem(basin) !== undefined) {
    throw new CliError(
      2,
      `invalid basin ${quoteArg(basin)}; \`--durable-streams-basin\` must be a basin name`,
    )
  }
  if (!/^\/[\w./~-]*[\w.~-]\/?$/.test(path)) {
    throw new CliError(
      2,
      `invalid path ${quoteArg(path)}; \`--durable-streams-path\` must be like /v1/stream`,
    )
  }
  const { 'long-poll': longPoll } = parsed
  if (longPoll !== undefined && !(/^\d{1,2}(\.\d{1,3})?$/.test(longPoll) && Number(longPoll) <= 60)) {
    throw new CliError(2, `invalid time ${quoteArg(longPoll)}; \`--long-poll\` must be seconds from 0 to 60`)
  }
  const { 'tls-cert': cert, 'tls-key': key } = parsed
  if (!cert !== !key) throw new CliError(2, '`--tls-cert` and `--tls-key` must be given together')
  return {
    port: Number(port),
    host,
    location,
    auth,
    allowedOrigins: origins === undefined ? undefined : parseOrigins(origins),
    allowedHosts: listOf(
      parsed['allowed-host'],
      'allowed-host',
      isHostName,
      'the name of a host without a port',
    ),
    rootToken,
    tls: cert && key ? { cert, key } : undefined,
    log,
    retention: retention === undefined ? undefined : parseRetention(retention),
    publicMetrics: parsed['public-metrics'],
    durableStreams: {
      basin,
      path,
      longPollMs: longPoll === undefined ? undefined : 1_000 * Number(longPoll),
    },
  }
}

function isHostName(text: string): boolean {
  return /^[a-z0-9_.-]+$/i.test(text)
}

/** Returns the values of an option that may be repeated; in a variable they are separated by commas. */
function listOf(
  values: readonly string[],
  option: string,
  isValid: (value: string) => boolean,
  rule: string,
): readonly string[] | undefined {
  const all = values.flatMap((value) => value.split(','))
  const wrong = all.find((value) => !isValid(value))
  if (wrong !== undefined)
    throw new CliError(2, `invalid value ${quoteArg(wrong)} of \`--${option}\`; it must be ${rule}`)
  const twice = all.find((value, index) => all.indexOf(value) < index)
  if (twice !== undefined) throw new CliError(2, `\`--${option}\` names ${quoteArg(twice)} twice`)
  return all.length === 0 ? undefined : all
}

function parseOrigins(text: string): true | readonly string[] {
  if (text === '*') return true
  const origins = text.split(',')
  const wrong = origins.find((origin) => !isOrigin(origin))
  if (wrong === undefined) return origins
  throw new CliError(
    2,
    `invalid origin ${quoteArg(wrong)}; \`--allow-origin\` must list origins such as ` +
      'http://localhost:3000, or be *',
  )
}

/** `headwater serve`: serves until a signal, and resolves when everything is closed. */
async function serveCommand(args: ServeArguments, context: CliContext): Promise<void> {
  const onError = (error: unknown) => context.printError(describeError(error))
  const given = givenRootToken(args.rootToken, context.env)
  if (args.auth && given !== undefined) checkRootToken(given)
  const tls = args.tls && (await readIdentity(args.tls))
  // Standard output is for log lines that a program can parse.
  const print = args.log === 'json' ? context.printError : context.print
  const created = await missingDirectories(args.location)
  const hw = await openEngine(args, context, onError)
  const signIn = new SignIn(hw, context.clock)
  const stop = stopSignal(context)
  let admitRequests!: () => void
  const rootTokenInForce = new Promise<void>((resolve) => {
    admitRequests = resolve
  })
  let server: DrainableServer | undefined
  try {
    // The port comes first, because a start that fails must not replace the token. Requests wait for it.
    server = await listen(hw, { ...args, tls, signIn }, rootTokenInForce, onError, context)
    const access = args.auth ? await establishRootToken(hw, given) : 'open'
    admitRequests()
    const storage = `${describeStorage(args.location)}${created}`
    const retention = args.retention ?? SYSTEM_STREAM_CONFIG.retentionPolicy
    const node = process.versions.node
    // Output that is kept has no link, except beside a new root token.
    const isOffered = access !== 'open' && (access.source === 'new' || context.output().isTTY === true)
    const code = isOffered ? signIn.offer() : undefined
    for (const line of welcome({ url: server.url, host: args.host, storage, retention, access, node, code }))
      print(line)
    for (const line of warnings(args, given)) context.printError(line)
    if (!stop.signal.aborted) {
      await new Promise((resolve) => stop.signal.addEventListener('abort', resolve, { once: true }))
    }
    print('Stopping: waiting for requests in flight. Press Ctrl+C again to stop immediately.')
  } finally {
    admitRequests()
    try {
      await closeAll(server, hw)
    } finally {
      stop.dispose()
    }
  }
}

/** Says what opening a directory will create: a mistyped path should not go unnoticed. */
async function missingDirectories(location: StorageLocation): Promise<string> {
  if (location.kind !== 'directory') return ''
  const isMissing = (path: string) =>
    stat(path).then(
      () => false,
      () => true,
    )
  if (!(await isMissing(location.path))) return ''
  return (await isMissing(dirname(resolve(location.path)))) ? ' (created, with its parents)' : ' (created)'
}

interface DrainableServer extends Pick<NodeServer, 'close' | 'url'> {
  /** Ends all sessions once `close` was called. */
  drain(): Promise<void>
}

/**
 * Closes the engine once sessions have ended: reads that wait end with it, not with the server's grace
 * period.
 */
async function closeAll(server: DrainableServer | undefined, hw: Engine): Promise<void> {
  const closed = server?.close()
  const closeEngine = async () => {
    await server?.drain()
    await hw.close()
  }
  await Promise.all([closed, closeEngine()])
}

function warnings({ auth, host }: ServeArguments, given: GivenRootToken | undefined): string[] {
  if (auth) return []
  const lines: string[] = []
  if (!isLoopback(host)) {
    lines.push(`Warning: --no-auth on ${printable(host)}: anyone who can reach it has full access`)
  }
  if (given !== undefined) lines.push(`Warning: ${ROOT_TOKEN_VARIABLE} is ignored because of --no-auth`)
  return lines
}

function isLoopback(host: string): boolean {
  if (host === 'localhost' || host === '::1') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

/** Formats an error with its stack and causes, safe for a terminal. */
function describeError(error: unknown): string {
  // Unlike `stack`, the text of `inspect` includes the causes.
  return inspect(error).split('\n').map(printable).join('\n')
}

/** @throws CliError if the files cannot be read or do not belong together. */
async function readIdentity({ cert, key }: NonNullable<ServeArguments['tls']>): Promise<TlsIdentity> {
  const identity = { cert: await readPem(cert, '--tls-cert'), key: await readPem(key, '--tls-key') }
  try {
    createSecureContext(identity)
    return identity
  } catch (error) {
    const files = `certificate ${quotePath(cert)} with the key ${quotePath(key)}`
    const message = printable((error as Error).message)
    const reason = /no start line/i.test(message) ? 'both must be in PEM' : message
    throw new CliError(1, `cannot use the ${files}: ${reason}`)
  }
}

async function readPem(path: string, option: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    const message = redact((error as Error).message, path)
    throw new CliError(1, `cannot read ${quotePath(path)} of \`${option}\`: ${message}`)
  }
}

async function listen(
  hw: Engine,
  args: Omit<ServeArguments, 'tls'> & { readonly tls: TlsIdentity | undefined; readonly signIn: SignIn },
  rootTokenInForce: Promise<void>,
  onError: (error: unknown) => void,
  context: CliContext,
): Promise<DrainableServer> {
  const { host, port, tls, log, auth: requiresToken, allowedOrigins, allowedHosts, retention } = args
  const auth = requiresToken ? 'token' : 'none'
  const getToken = async (exchange: RequestExchange) => {
    await rootTokenInForce
    return bearerToken(exchange)
  }
  try {
    const cors = allowedOrigins ?? requiresToken
    const served = toNodeHandler(hw, {
      auth,
      getToken,
      cors,
      retention,
      publicMetrics: args.publicMetrics,
      durableStreams: args.durableStreams,
      page: consolePage(),
      onError,
      ...(allowedHosts && { allowedHosts }),
    })
    const handler = args.signIn.around(served)
    const logged = log === undefined ? handler : withRequestLog(handler, log, context)
    const server = await serveHandler(logged, { host, port, ...(tls && { tls }) }, served.drain)
    return { url: server.url, close: server.close, drain: served.drain }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const address = `port ${port} of ${quoteArg(host)}`
    if (code === 'EADDRINUSE') {
      throw new CliError(1, `${address} is already in use; choose another with \`--port\``)
    }
    if (code === 'EACCES') {
      throw new CliError(1, `no permission to listen on ${address}; choose another with \`--port\``)
    }
    throw new CliError(1, `cannot listen on ${address}: ${redact(message, host)}`)
  }
}

export const SERVE = command({
  description: 'Serve the HTTP API, HTTP/1.1 and HTTP/2 on one port',
  examples: [
    'headwater serve',
    'headwater serve --storage ./data --port 9000 --retention 30d --log text',
    'headwater serve --no-auth --storage memory',
  ],
  notes: SERVE_NOTES,
  definitions: SERVE_DEFINITIONS,
  parse,
  run: serveCommand,
})
