import { type Headwater, HeadwaterError } from '../../src/index.ts'
import type { CliContext } from './context.ts'
import { contextOf, readContexts } from './contexts.ts'
import { CliError, cliErrorOf, printable } from './errors.ts'
import { DEFAULT_URL, Server, type ServerOptions, type ServerTarget, serverWith } from './server.ts'
import { checkExists, openEngine, parseStorageLocation, type StorageLocation } from './storage.ts'

export const ROOT_TOKEN_VARIABLE = 'HEADWATER_ROOT_TOKEN'

/** The target of a command: a server, or a storage that the command opens. */
export type CliTarget = ServerTarget | StorageLocation

export interface TargetOptions {
  readonly storage?: string | undefined
  readonly url?: string | undefined
  readonly token?: string | undefined
  readonly context?: string | undefined
}

/** Returns the target that the options name. @throws CliError with exit code 2. */
export function parseTarget(
  { storage, url, token, context }: TargetOptions,
  env: CliContext['env'],
): CliTarget {
  if (storage !== undefined) return parseStorageLocation(storage)
  const given = ['`--token`', token] as const
  if (url === undefined && (context !== undefined || !env.HEADWATER_URL)) {
    const contexts = readContexts(env)
    const name = context ?? (env.HEADWATER_CONTEXT || contexts.current)
    if (name !== undefined) {
      const place = `the context ${printable(name)}`
      const stored = contextOf(contexts, name)
      // Tokens of variables are for other servers.
      return serverWith(stored.url, place, [given, [place, stored.token]])
    }
  }
  const source = url === undefined ? 'HEADWATER_URL' : '`--url`'
  return serverWith(url ?? (env.HEADWATER_URL || DEFAULT_URL), source, [
    given,
    ['HEADWATER_TOKEN', env.HEADWATER_TOKEN || undefined],
    [ROOT_TOKEN_VARIABLE, env[ROOT_TOKEN_VARIABLE] || undefined],
  ])
}

export interface UseOptions extends ServerOptions {
  /** Refuses a storage that does not exist yet. Default true. */
  readonly mustExist?: boolean | undefined
  /** Ends the connection, besides the user. Its reason is reported. */
  readonly giveUp?: AbortSignal | undefined
}

export function withHeadwater<Result>(
  options: TargetOptions,
  context: CliContext,
  use: (hw: Headwater, server: Server | undefined) => Promise<Result>,
  useOptions?: UseOptions,
): Promise<Result> {
  return withTarget(parseTarget(options, context.env), context, use, useOptions)
}

/**
 * Runs a command on its target: a server, or a storage that is opened for that time. When the user stops the
 * command, requests to a server are aborted.
 */
export async function withTarget<Result>(
  target: CliTarget,
  context: CliContext,
  use: (hw: Headwater, server: Server | undefined) => Promise<Result>,
  { mustExist = true, giveUp, ...options }: UseOptions = {},
): Promise<Result> {
  const signals = [context.stopSignal(), ...(giveUp === undefined ? [] : [giveUp])]
  let server: Server | undefined
  const opened = async () => {
    if (target.kind === 'server') {
      server = new Server(target, context)
      return server.connect({ signal: AbortSignal.any(signals), ...options })
    }
    if (mustExist) await checkExists(target)
    return openEngine(target, context, (error) => context.printError(printable(String(error))))
  }
  try {
    const hw = await opened()
    return await use(hw, server).finally(() => hw.close())
  } catch (error) {
    const end = signals.find(({ aborted }) => aborted)
    if (HeadwaterError.is(error) && end !== undefined) throw end.reason
    const reported =
      HeadwaterError.is(error) && server ? new CliError(1, server.describe(error)) : cliErrorOf(error)
    if (server?.hint !== undefined) context.printError(server.hint)
    throw reported ?? error
  }
}
