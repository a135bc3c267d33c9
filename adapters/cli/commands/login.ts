import { HeadwaterError } from '../../../src/index.ts'
import type { CliContext } from '../context.ts'
import { contextOf, readContexts, writeContexts } from '../contexts.ts'
import { CliError, printable } from '../errors.ts'
import { answerFrom } from '../input.ts'
import { newCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { DEFAULT_URL, serverWith } from '../server.ts'
import { withTarget } from '../target.ts'

const DEFAULT_CONTEXT = 'default'

export const loginCommand = (context: CliContext) =>
  newCommand('login', {
    description: 'Store the URL and access token of a server as a context',
    examples: [
      'headwater login --url https://streams.example.com',
      'headwater login staging --url https://staging.example.com < token.txt',
      'headwater login local --url http://127.0.0.1:8787 --no-token',
    ],
    notes: [
      'Asks for the access token, or reads it from standard input if that is not a terminal. Checks it, stores',
      'it in a file that only you can read, and makes the context the current one.',
    ],
  })
    .argument('[NAME]', 'Name of the context. Default: default', contextName)
    .option('--url <URL>', `URL of the server, such as ${DEFAULT_URL}. Default: HEADWATER_URL`)
    .option('--no-token', 'The server requires no token')
    .action(async (name = DEFAULT_CONTEXT, options) => {
      // Variables with tokens do not matter: the token is given for this server.
      const given = options.url ?? (context.env.HEADWATER_URL || DEFAULT_URL)
      const { url } = serverWith(given, '`--url`', [])
      const { contexts } = readContexts(context.env)
      const token = options.token ? await readToken(url, context) : undefined
      await withTarget(serverWith(url, '`--url`', [['the input', token]]), context, async (hw) => {
        try {
          await hw.listBasins({ limit: 1 })
        } catch (error) {
          // The token is valid all the same.
          if (!HeadwaterError.is(error) || error.code !== 'permission_denied') throw error
        }
      })
      const added = { [name]: { url, ...(token !== undefined && { token }) } }
      const file = await writeContexts({ current: name, contexts: { ...contexts, ...added } }, context.env)
      context.printError(`Logged in to ${url} as ${name}; stored in ${printable(file)}`)
    })

function contextName(name: string): string {
  if (/^[\w][\w.-]{0,63}$/.test(name) && !(name in {})) return name
  throw new CliError(
    2,
    'the name of a context must have 1 to 64 letters, digits, dots, hyphens and underscores',
  )
}

async function readToken(url: string, { input, printError }: CliContext): Promise<string> {
  const source = input()
  if (source.isTTY) printError(`Access token for ${url} (not shown):`)
  const token = await answerFrom(source, true)
  if (token !== '') return token
  throw new CliError(2, 'no access token was given; a server without authentication needs `--no-token`')
}

export const logoutCommand = ({ env, printError }: CliContext) =>
  newCommand('logout', {
    description: 'Remove a stored context',
    examples: ['headwater logout', 'headwater logout staging'],
    notes: ['The token stays valid; `headwater token revoke` ends it.'],
  })
    .argument('[NAME]', 'Name of the context. Default: the current one')
    .action(async (given) => {
      const { current, contexts } = readContexts(env)
      const name = given ?? current
      if (name === undefined) throw new CliError(1, 'there is no current context; name one')
      contextOf({ contexts }, name)
      const { [name]: _, ...others } = contexts
      await writeContexts({ current: current === name ? undefined : current, contexts: others }, env)
      printError(`Removed the context ${printable(name)}`)
    })

export const contextsCommand = (context: CliContext) =>
  newCommand('contexts', {
    description: 'List the contexts, or choose the current one',
    examples: ['headwater contexts', 'headwater contexts staging'],
    notes: ['Tokens are not shown. HEADWATER_CONTEXT and --context choose a context for some commands only.'],
  })
    .argument('[NAME]', 'Context to make the current one')
    .option('--json', 'Print JSON')
    .action(async (name, { json }) => {
      const { current, contexts } = readContexts(context.env)
      if (name !== undefined) {
        contextOf({ contexts }, name)
        await writeContexts({ current: name, contexts }, context.env)
        return context.printError(`The current context is ${printable(name)}`)
      }
      const rows = Object.entries(contexts).map(([name, { url, token }]) => {
        return { name, url, current: name === current, token: token !== undefined }
      })
      if (json) return context.print(JSON.stringify(rows))
      const cellsOf = ({ name, url, current, token }: (typeof rows)[number]) => {
        return [current ? '*' : '', name, url, token ? 'with token' : 'without token']
      }
      printTable(rows.map(cellsOf), context)
    })
