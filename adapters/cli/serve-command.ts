import type { Headwater } from '../../src/index.ts'
import { createHandler } from '../http/index.ts'
import { type FetchHandler, type NodeServer, serve } from '../node/index.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { printable, retold, shown } from './printable.ts'
import {
  checkRootToken,
  establishRootToken,
  type GivenRootToken,
  givenRootToken,
  ROOT_TOKEN_VARIABLE,
} from './root-token.ts'
import type { ServeArguments } from './serve-arguments.ts'
import { stopSignal } from './stop-signal.ts'
import { chooseStorage, openEngine } from './storages.ts'
import { isLoopback, welcome } from './welcome.ts'

/** `headwater serve`: serves until a signal asks to stop. Resolves when all is closed. */
export async function serveCommand(args: ServeArguments, context: CliContext): Promise<void> {
  const chosen = chooseStorage(context.storages, { name: args.storage, directory: args.directory })
  const onError = (error: unknown) => context.printError(described(error))
  const given = givenRootToken(args.rootToken, context.env)
  if (!args.open && given !== undefined) checkRootToken(given)
  const hw = await openEngine(chosen, context, onError)
  const stop = stopSignal(context)
  let server: NodeServer | undefined
  try {
    server = await listen(createHandler(hw, { open: args.open, onError }), args, onError)
    const access = args.open ? 'open' : await establishRootToken(hw, given)
    for (const line of welcome({ url: server.url, storage: chosen.description, access })) context.print(line)
    for (const line of warnings(args, given)) context.printError(line)
    await stop.requested
    context.print('Stopping: waiting for what is in flight. Once more stops at once')
  } finally {
    try {
      await closeAll(server, hw)
    } finally {
      stop.dispose()
    }
  }
}

/** Both at once: closing the engine ends the sessions that follow a stream, which would use up the server's whole grace. */
async function closeAll(server: NodeServer | undefined, hw: Headwater): Promise<void> {
  await Promise.all([server?.close(), hw.close()])
}

function warnings({ open, host }: ServeArguments, given: GivenRootToken | undefined): string[] {
  if (!open) return []
  const lines: string[] = []
  if (!isLoopback(host))
    lines.push(`Warning: whoever reaches ${printable(host)} can read, write and delete everything (--open)`)
  if (given !== undefined) lines.push(`Warning: ${ROOT_TOKEN_VARIABLE} is not used: --open demands no token`)
  return lines
}

function described(error: unknown): string {
  const text = error instanceof Error ? String(error.stack) : String(error)
  return text.split('\n').map(printable).join('\n')
}

async function listen(
  handler: FetchHandler,
  { host, port }: ServeArguments,
  onError: (error: unknown) => void,
): Promise<NodeServer> {
  try {
    return await serve(handler, { host, port, onError })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const place = `port ${port} of ${printable(host)}`
    if (code === 'EADDRINUSE') {
      throw new CliError(1, `${place} is in use. Choose another with --port`)
    }
    if (code === 'EACCES') throw new CliError(1, `${place} needs more rights. Choose another with --port`)
    throw new CliError(1, `cannot listen on port ${port} of ${shown(host)}: ${retold(message, host)}`)
  }
}
