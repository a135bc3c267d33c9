import { stat } from 'node:fs/promises'
import { createHandler } from '../http/index.ts'
import { Service, TransferError } from '../transfer/index.ts'
import type { CliContext } from './cli-context.ts'
import { CliError } from './failure.ts'
import { printable, shown } from './printable.ts'
import { stopSignal } from './stop-signal.ts'
import { chooseStorage, openEngine } from './storages.ts'
import { shownUrl } from './token-place.ts'
import type { TransferArguments } from './transfer-arguments.ts'

/** Where nothing listens: the handler of a directory's engine is called without a socket. */
const IN_THIS_PROCESS = 'http://localhost'

/**
 * Transfers to or from a service, or a directory, whose engine is open meanwhile and answers as a service would. A signal to stop ends the transfer between
 * two requests.
 *
 * @throws CliError
 */
export async function withService<Result>(
  args: TransferArguments & { readonly directoryMustExist: boolean },
  context: CliContext,
  use: (service: Service, stopped: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const stop = stopSignal(context)
  const stopped = new AbortController()
  void stop.requested.then(() => stopped.abort())
  try {
    return await atPlace(args, context, stopped.signal, use)
  } catch (error) {
    if (!(error instanceof TransferError)) throw error
    if (error.kind === 'aborted') throw new CliError(1, 'stopped before the end: --resume goes on')
    if (error.code === 'authn' && 'url' in args.place && args.place.token === undefined) {
      context.printError('No token was given: see HEADWATER_TOKEN in the --help of the command')
    }
    throw new CliError(1, printable(error.message))
  } finally {
    stop.dispose()
  }
}

async function atPlace<Result>(
  args: TransferArguments & { readonly directoryMustExist: boolean },
  context: CliContext,
  signal: AbortSignal,
  use: (service: Service, stopped: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const { place, encryptionKey, directoryMustExist } = args
  const { clock, fetch } = context
  const common = { clock, signal, encryptionKey }
  if (!('directory' in place)) {
    const { url, token } = place
    return use(new Service({ ...common, fetch, url, token, name: shownUrl(url) }), signal)
  }
  const chosen = chooseStorage(context.storages, place)
  // Opening creates what is missing: a mistyped name would look like a storage without basins.
  if (directoryMustExist && !(await isDirectory(place.directory))) {
    throw new CliError(1, `--dir: there is no directory ${shown(place.directory)}`)
  }
  const hw = await openEngine(chosen, context, (error) => context.printError(printable(String(error))))
  try {
    const service = new Service({
      ...common,
      fetch: createHandler(hw, { open: true }),
      url: IN_THIS_PROCESS,
      name: 'the directory',
      restoreStream: ({ basin, name }, restored) => hw.basin(basin).restoreStream(name, restored),
    })
    return await use(service, signal)
  } finally {
    await hw.close()
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory()
  } catch {
    return false
  }
}
