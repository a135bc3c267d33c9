import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'
import { inspect } from 'node:util'
import { type CommandUnknownOpts, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { SYSTEM_STREAM_CONFIG } from '../../../src/core/config.ts'
import type { Engine } from '../../../src/index.ts'
import { consolePage } from '../../console/page.ts'
import type { RequestExchange } from '../../http/exchange.ts'
import { bearerToken } from '../../http/options.ts'
import { isOrigin } from '../../http/origins.ts'
import {
  type DrainableNodeHandler,
  type NodeHandler,
  type NodeServer,
  type TlsIdentity,
  toNodeHandler,
} from '../../node/index.ts'
import { serveHandler } from '../../node/serve.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable, quoteArg, quotePath, redact } from '../errors.ts'
import { newCommand } from '../options.ts'
import { withRequestLog } from '../request-log.ts'
import { SignIn } from '../sign-in.ts'
import { openEngine, parseStorageLocation, type StorageLocation } from '../storage.ts'
import { ROOT_TOKEN_VARIABLE } from '../target.ts'
import { basinName, contentOfFile, fail, integer, nonEmpty, retention } from '../values.ts'
import { establishRootToken, givenRootToken, welcome } from '../welcome.ts'
import { apply, readResources } from './apply.ts'

const DEFAULT_DIRECTORY = './data'
const LOG_FORMATS = ['text', 'json'] as const

export const serveCommand = (context: CliContext) =>
  serveOptions()
    .hook('preAction', (command) => setFromVariables(command, context.env))
    .action((options) => {
      const { auth, rootToken, tlsCert, tlsKey } = options
      if (!auth && rootToken !== undefined) {
        throw new CliError(2, '`--root-token` cannot be combined with `--no-auth`, which requires no token')
      }
      if (!tlsCert !== !tlsKey) throw new CliError(2, '`--tls-cert` and `--tls-key` must be given together')
      const location = parseStorageLocation(options.storage ?? DEFAULT_DIRECTORY)
      return serve(options, location, context)
    })

function serveOptions() {
  return newCommand('serve', HELP)
    .option('--port <PORT>', 'TCP port; 0 selects a free one', integer(0, 65_535), 8787)
    .option('--host <HOST>', 'Address to listen on', nonEmpty, '127.0.0.1')
    .option(
      '--storage <STORAGE>',
      'Storage: memory, a directory such as ./data, sqlite:FILE, postgres://HOST/DATABASE or s3://BUCKET/PREFIX. ' +
        `Default: ${DEFAULT_DIRECTORY}`,
    )
    .option('--no-auth', 'Disable authentication: anyone who can connect has full access')
    .option(
      '--allow-origin <ORIGINS>',
      'Origins whose web pages may call the server, separated by commas; * for any. Default: any, or ' +
        'none with --no-auth',
      origins,
    )
    .option(
      '--allowed-host <HOST>',
      'Name besides localhost and IP addresses that clients use for the server; may be repeated. ' +
        'Default: any, or none with --no-auth on a loopback address',
      hosts,
    )
    .option('--root-token <TOKEN>', 'Set the root token; see below')
    .option('--tls-cert <FILE>', 'File with the TLS certificate and its chain, in PEM: serves https')
    .option('--tls-key <FILE>', 'File with the private key of the certificate, in PEM')
    .addOption(
      new Option('--log <FORMAT>', 'Log each request on a line of standard output').choices(LOG_FORMATS),
    )
    .option(
      '--retention <DURATION>',
      'How long streams keep records by default: 12h, 30d, ... or forever. Default: 7d',
      retention,
    )
    .option(
      '--durable-streams-basin <BASIN>',
      'Basin that is served by the Durable Streams protocol',
      basinName,
      'durable-streams',
    )
    .option(
      '--durable-streams-path <PATH>',
      'Path below which each path is a stream of that protocol',
      streamsPath,
      '/v1/stream',
    )
    .option(
      '--long-poll <SECONDS>',
      'How long a long poll of that protocol waits, at most 60. Default: 30',
      seconds,
    )
    .option('--init-file <FILE>', 'File of basins and streams that are created or changed first: see apply')
    .option('--public-metrics', 'Serve /metrics, for Prometheus, without an access token')
}

const HELP = {
  description: 'Serve the HTTP API, HTTP/1.1 and HTTP/2 on one port',
  examples: [
    'headwater serve',
    'headwater serve --storage ./data --port 9000 --retention 30d --log text',
    'headwater serve --no-auth --storage memory',
  ],
  notes: [
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
  ],
}

type ServeOptions = ReturnType<ReturnType<typeof serveOptions>['opts']>

function origins(text: string): true | readonly string[] {
  if (text === '*') return true
  const all = text.split(',')
  return all.every(isOrigin) ? all : fail('It must list origins such as http://localhost:3000, or be *')
}

/** The option may be repeated; in its variable, commas separate names. */
function hosts(text: string, before: readonly string[] | undefined): readonly string[] {
  const all = [...(before ?? []), ...text.split(',')]
  if (!all.every((host) => /^[a-z0-9_.-]+$/i.test(host))) fail('It must be the name of a host without a port')
  return all
}

function streamsPath(text: string): string {
  return /^\/[\w./~-]*[\w.~-]\/?$/.test(text) ? text : fail('It must be a path such as /v1/stream')
}

function seconds(text: string): number {
  const value = /^\d{1,2}(\.\d{1,3})?$/.test(text) ? Number(text) : Number.NaN
  return value <= 60 ? value : fail('It must be a number of seconds from 0 to 60')
}

/**
 * Sets options that are not given from variables such as `HEADWATER_TLS_CERT` and `HEADWATER_NO_AUTH`. An
 * empty one counts as unset. Commander has this, too, but any value of a flag, even `false`, would turn it
 * on.
 */
function setFromVariables(command: CommandUnknownOpts, env: CliContext['env']): void {
  for (const option of command.options) {
    const name = option.attributeName()
    const variable = `HEADWATER_${option.long!.slice(2).toUpperCase().replaceAll('-', '_')}`
    const text = env[variable]
    // The root token has rules of its own.
    if (!text || name === 'rootToken' || command.getOptionValueSource(name) === 'cli') continue
    try {
      command.setOptionValueWithSource(name, parsed(option, text), 'env')
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      throw new CliError(2, `invalid value ${quoteArg(text)} of ${variable}. ${error.message}`)
    }
  }
}

function parsed(option: Option, text: string): unknown {
  if (option.required) return option.parseArg?.(text, undefined as never) ?? text
  if (text !== 'true' && text !== 'false') fail('It must be `true` or `false`')
  return (text === 'true') !== option.negate
}

/** Serves until a signal, and resolves when everything is closed. */
async function serve(options: ServeOptions, location: StorageLocation, context: CliContext): Promise<void> {
  const { auth, host, log, tlsCert, tlsKey, initFile, retention } = options
  const onError = (error: unknown) => context.printError(describeError(error))
  const given = auth ? givenRootToken(options.rootToken, context.env) : undefined
  const tls = tlsCert && tlsKey ? readIdentity(tlsCert, tlsKey) : undefined
  // Standard output is for log lines that a program can parse.
  const print = log === 'json' ? context.printError : context.print
  const resources = initFile === undefined ? undefined : await readResources(initFile, context)
  const created = await missingDirectory(location)
  // Not later: a signal during the start must close the engine, too.
  const stop = context.stopSignal()
  const hw = await openEngine(location, context, onError)
  const signIn = new SignIn(hw, context.clock)
  let admitRequests!: () => void
  const rootTokenInForce = new Promise<void>((resolve) => {
    admitRequests = resolve
  })
  const served = handlerOf(hw, options, rootTokenInForce, onError)
  let server: NodeServer | undefined
  try {
    // The port comes first, because a start that fails must not replace the token. Requests wait for it.
    const handler = signIn.around(served)
    const logged = log === undefined ? handler : withRequestLog(handler, log, context)
    server = await listen(logged, { ...options, tls }, served.drain)
    if (resources !== undefined) await apply(hw, resources, print)
    const access = auth ? await establishRootToken(hw, given) : 'open'
    admitRequests()
    // Output that is kept has no link, except beside a new root token.
    const isOffered = access !== 'open' && (access.source === 'new' || context.output().isTTY === true)
    const lines = welcome({
      url: server.url,
      host,
      storage: `${location.text}${created}`,
      retention: retention ?? SYSTEM_STREAM_CONFIG.retentionPolicy,
      access,
      code: isOffered ? signIn.offer() : undefined,
    })
    for (const line of lines) print(line)
    for (const line of auth ? [] : openAccessWarnings(host, context.env)) context.printError(line)
    if (!stop.aborted) await once(stop, 'abort')
    print('Stopping: waiting for requests in flight. Press Ctrl+C again to stop immediately.')
  } finally {
    admitRequests()
    const closed = server?.close()
    // Reads that wait end with the engine, not with the grace period of the server.
    await served.drain()
    await Promise.all([closed, hw.close()])
  }
}

/** Says what opening a directory will create: a mistyped path should not go unnoticed. */
async function missingDirectory({ kind, path }: StorageLocation): Promise<string> {
  if (kind !== 'directory' || path === undefined) return ''
  const exists = await stat(path).then(Boolean, () => false)
  return exists ? '' : ' (created)'
}

function openAccessWarnings(host: string, env: CliContext['env']): string[] {
  const isLoopback = host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
  const exposed = `Warning: --no-auth on ${printable(host)}: anyone who can reach it has full access`
  const ignored = `Warning: ${ROOT_TOKEN_VARIABLE} is ignored because of --no-auth`
  return [...(isLoopback ? [] : [exposed]), ...(env[ROOT_TOKEN_VARIABLE] ? [ignored] : [])]
}

/** Formats an error with its stack and causes, safe for a terminal. */
function describeError(error: unknown): string {
  // Unlike `stack`, the text of `inspect` includes the causes.
  return inspect(error).split('\n').map(printable).join('\n')
}

/** @throws CliError if the files cannot be read or do not belong together. */
function readIdentity(cert: string, key: string): TlsIdentity {
  const identity = { cert: contentOfFile(cert), key: contentOfFile(key) }
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

function handlerOf(
  hw: Engine,
  options: ServeOptions,
  rootTokenInForce: Promise<void>,
  onError: (error: unknown) => void,
): DrainableNodeHandler {
  const { auth, allowOrigin, allowedHost, longPoll, retention, publicMetrics = false } = options
  return toNodeHandler(hw, {
    auth: auth ? 'token' : 'none',
    async getToken(exchange: RequestExchange) {
      await rootTokenInForce
      return bearerToken(exchange)
    },
    cors: allowOrigin ?? auth,
    retention,
    publicMetrics,
    durableStreams: {
      basin: options.durableStreamsBasin,
      path: options.durableStreamsPath,
      longPollMs: longPoll === undefined ? undefined : 1_000 * longPoll,
    },
    page: consolePage(),
    onError,
    ...(allowedHost && { allowedHosts: allowedHost }),
  })
}

async function listen(
  handler: NodeHandler,
  {
    host,
    port,
    tls,
  }: { readonly host: string; readonly port: number; readonly tls: TlsIdentity | undefined },
  drain: () => Promise<void>,
): Promise<NodeServer> {
  try {
    return await serveHandler(handler, { host, port, tls }, drain)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const address = `port ${port} of ${quoteArg(host)}`
    const other = 'choose another with `--port`'
    if (code === 'EADDRINUSE') throw new CliError(1, `${address} is already in use; ${other}`)
    if (code === 'EACCES') throw new CliError(1, `no permission to listen on ${address}; ${other}`)
    throw new CliError(1, `cannot listen on ${address}: ${redact(message, host)}`)
  }
}
