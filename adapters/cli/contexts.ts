import { readFileSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { idFrom, secureRandom } from '../../src/runtime/random.ts'
import type { CliContext } from './context.ts'
import { CliError, printable, quoteArg, quotePath } from './errors.ts'

/** The servers that the user has logged in to, by name. */
export interface Contexts {
  /** The name of the one that is used by default. */
  readonly current?: string | undefined
  readonly contexts: Readonly<Record<string, ServerContext>>
}

/** A server with its access token. */
interface ServerContext {
  readonly url: string
  /** Undefined for a server without authentication. */
  readonly token?: string | undefined
}

type Env = CliContext['env']

/** Returns the file of the contexts, undefined if the user has no configuration directory. */
function fileOf({ XDG_CONFIG_HOME, APPDATA, HOME }: Env): string | undefined {
  const directory = XDG_CONFIG_HOME || APPDATA || (HOME && join(HOME, '.config'))
  return directory ? join(directory, 'headwater', 'contexts.json') : undefined
}

/** Reads the contexts. There are none if the file does not exist. @throws CliError for a damaged file. */
export function readContexts(env: Env): Contexts {
  const file = fileOf(env)
  if (file === undefined) return { contexts: {} }
  try {
    const stored = JSON.parse(readFileSync(file, 'utf8')) as Contexts
    if (Object.values(stored.contexts).every(({ url }) => typeof url === 'string')) return stored
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { contexts: {} }
    if (code !== undefined) throw new CliError(1, `cannot read ${quotePath(file)}: ${printable(message)}`)
    // The message of the parser would quote the file, and so a token.
  }
  throw new CliError(1, `${quotePath(file)} is not a file of contexts; remove it and log in again`)
}

/** Replaces the file of the contexts, which only the user can read. Resolves to its path. */
export async function writeContexts(contexts: Contexts, env: Env): Promise<string> {
  const file = fileOf(env)
  if (file === undefined) {
    throw new CliError(1, 'there is no configuration directory; set HOME or XDG_CONFIG_HOME')
  }
  // A name of its own, because another command may replace the file at the same time.
  const temporary = `${file}.${idFrom(secureRandom)}`
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await writeFile(temporary, `${JSON.stringify(contexts, undefined, 2)}\n`, { mode: 0o600, flag: 'wx' })
    await rename(temporary, file)
    return file
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {})
    throw new CliError(1, `cannot write ${quotePath(file)}: ${printable((error as Error).message)}`)
  }
}

/** Returns a context. @throws CliError with exit code 2 if there is none of this name. */
export function contextOf({ contexts }: Contexts, name: string): ServerContext {
  if (Object.hasOwn(contexts, name)) return contexts[name]!
  const known = Object.keys(contexts).join(', ') || 'there are none'
  throw new CliError(2, `unknown context ${quoteArg(name)}; expected one of \`headwater contexts\`: ${known}`)
}
