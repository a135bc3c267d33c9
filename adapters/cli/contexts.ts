import { readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { CliContext } from './context.ts'
import { CliError, printable, quotePath } from './errors.ts'

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
