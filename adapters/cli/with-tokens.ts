import { stat } from 'node:fs/promises'
import { type AccessTokens, ownTokens } from './access-tokens.ts'
import type { CliContext } from './cli-context.ts'
import { CliError, ServiceError } from './failure.ts'
import { printable, shown } from './printable.ts'
import { remoteTokens } from './remote-tokens.ts'
import { chooseStorage, openEngine } from './storages.ts'
import type { DirectoryPlace, ServicePlace, TokenPlace } from './token-place.ts'

/** Does something with the access tokens of a service, or of a directory, whose engine is open meanwhile. */
export async function withTokens<Result>(
  place: TokenPlace,
  context: CliContext,
  use: (tokens: AccessTokens) => Promise<Result>,
): Promise<Result> {
  return 'directory' in place ? inDirectory(place, context, use) : atService(place, context, use)
}

async function atService<Result>(
  place: ServicePlace,
  context: CliContext,
  use: (tokens: AccessTokens) => Promise<Result>,
): Promise<Result> {
  try {
    return await use(remoteTokens(place, context))
  } catch (error) {
    if (place.token === undefined && error instanceof ServiceError && error.code === 'authn') {
      context.printError('No token was given: see HEADWATER_TOKEN in the --help of the command')
    }
    throw error
  }
}

async function inDirectory<Result>(
  { directory }: DirectoryPlace,
  context: CliContext,
  use: (tokens: AccessTokens) => Promise<Result>,
): Promise<Result> {
  const chosen = chooseStorage(context.storages, { directory })
  // Opening creates what is missing: a mistyped name would look like a storage without tokens.
  if (!(await isDirectory(directory)))
    throw new CliError(1, `--dir: there is no directory ${shown(directory)}`)
  const hw = await openEngine(chosen, context, (error) => context.printError(printable(String(error))))
  try {
    return await use(ownTokens(hw))
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
