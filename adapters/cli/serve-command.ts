import { type NodeServer, serve } from '../node/index.ts'
import type { ServeArguments } from './arguments.ts'
import { type CliContext, CliError, type Service } from './cli-context.ts'
import { stopSignal } from './stop-signal.ts'
import { isLoopback, welcome } from './welcome.ts'

/** `headwater serve`: serves until a signal asks to stop. Resolves when all is closed. */
export async function serveCommand(args: ServeArguments, context: CliContext): Promise<void> {
  if (!args.open) {
    throw new CliError(
      2,
      'every request would be refused with 401, because this version has no access tokens yet. ' +
        'Pass --open to serve without them',
    )
  }
  const onError = (error: unknown) => context.printError(described(error))
  const service = await context.openService({ storage: args.storage, onError })
  const stop = stopSignal(context)
  try {
    const server = await listen(service, args, onError)
    for (const line of welcome(server, args.storage)) context.print(line)
    if (!isLoopback(args.host)) {
      context.printError(
        `Warning: whoever reaches ${args.host} can read, write and delete everything (--open)`,
      )
    }
    await stop.requested
    context.print('Stopping: waiting for what is in flight. Once more stops at once')
    // Both at once: closing the service ends the sessions that follow a stream, which would use up the whole grace.
    await Promise.all([server.close(), service.close()])
  } finally {
    stop.dispose()
    await service.close()
  }
}

function described(error: unknown): string {
  return error instanceof Error ? String(error.stack) : String(error)
}

async function listen(
  service: Service,
  args: ServeArguments,
  onError: (error: unknown) => void,
): Promise<NodeServer> {
  const { host, port } = args
  try {
    return await serve(service.handler, { host, port, onError })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new CliError(1, `port ${port} of ${host} is in use. Choose another with --port`)
    }
    if (code === 'EACCES')
      throw new CliError(1, `port ${port} of ${host} needs more rights. Choose another with --port`)
    throw new CliError(1, `cannot listen on port ${port} of ${host}: ${message}`)
  }
}
