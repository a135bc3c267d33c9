import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { HeadwaterError } from '../../../src/index.ts'
import { command, flag, positional } from '../command.ts'
import type { CliContext } from '../context.ts'
import { checkContextName, DEFAULT_CONTEXT, readContexts, writeContexts } from '../contexts.ts'
import { CliError, printable, quoteArg } from '../errors.ts'
import { table } from '../output.ts'
import {
  parseTarget,
  type ServiceTarget,
  serviceTarget,
  TARGET_DEFINITIONS,
  withHeadwater,
} from '../target.ts'

const { url: URL_DEFINITION } = TARGET_DEFINITIONS

export const LOGIN = command({
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
  definitions: {
    name: positional('Name of the context. Default: default', { required: false }),
    url: {
      ...URL_DEFINITION,
      description: `${URL_DEFINITION.description}. Default: HEADWATER_URL`,
      isShared: false,
    },
    token: flag('The server requires no token', { default: true }),
  },
  parse: (values, { env }) => ({
    name: checkContextName(values.name ?? DEFAULT_CONTEXT),
    // Variables with tokens do not matter: the token is given for this server.
    target: parseTarget({ url: values.url ?? (env.HEADWATER_URL || undefined) }, {}) as ServiceTarget,
    hasToken: values.token,
  }),
  async run({ name, target: { url }, hasToken }, context) {
    const before = readContexts(context.env)
    const token = hasToken ? await readToken(url, context) : undefined
    const target = serviceTarget(url, token)
    await withHeadwater({ target }, context, async (hw) => {
      try {
        await hw.listBasins({ limit: 1 })
      } catch (error) {
        // The token is valid all the same.
        if (!HeadwaterError.is(error) || error.code !== 'permission_denied') throw error
      }
    })
    const contexts = { ...before.contexts, [name]: { url, ...(token !== undefined && { token }) } }
    const file = await writeContexts({ current: name, contexts }, context.env)
    context.printError(`Logged in to ${url} as ${name}; stored in ${printable(file)}`)
  },
})

/** Reads one line, which is not shown if it is typed. */
async function readToken(url: string, context: CliContext): Promise<string> {
  const input = context.input()
  if (input.isTTY) context.printError(`Access token for ${url} (not shown):`)
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input, output: silent, terminal: input.isTTY === true })
  try {
    for await (const line of lines) if (line.trim() !== '') return line.trim()
  } finally {
    lines.close()
  }
  throw new CliError(2, 'no access token was given; a server without authentication needs `--no-token`')
}

export const LOGOUT = command({
  description: 'Remove a stored context',
  examples: ['headwater logout', 'headwater logout staging'],
  notes: ['The token stays valid; `headwater token revoke` ends it.'],
  definitions: {
    name: positional('Name of the context. Default: the current one', { required: false }),
  },
  parse: ({ name }) => name,
  async run(given, { env, printError }) {
    const { current, contexts } = readContexts(env)
    const name = given ?? current
    if (name === undefined) throw new CliError(1, 'there is no current context; name one')
    const { [name]: removed, ...others } = contexts
    if (removed === undefined) throw unknownContext(name)
    await writeContexts({ current: current === name ? undefined : current, contexts: others }, env)
    printError(`Removed the context ${printable(name)}`)
  },
})

export const CONTEXTS = command({
  description: 'List the contexts, or choose the current one',
  examples: ['headwater contexts', 'headwater contexts staging'],
  notes: ['Tokens are not shown. HEADWATER_CONTEXT and --context choose a context for some commands only.'],
  definitions: {
    name: positional('Context to make the current one', { required: false }),
    json: flag('Print JSON'),
  },
  parse: (values) => values,
  async run({ name, json }, { env, print, printError }) {
    const { current, contexts } = readContexts(env)
    if (name !== undefined) {
      if (!Object.hasOwn(contexts, name)) throw unknownContext(name)
      await writeContexts({ current: name, contexts }, env)
      printError(`The current context is ${printable(name)}`)
      return
    }
    const rows = Object.entries(contexts).map(([name, { url, token }]) => ({
      name,
      url,
      current: name === current,
      token: token !== undefined,
    }))
    if (json) print(JSON.stringify(rows))
    else for (const line of table(rows.map(rowOf))) print(line)
  },
})

function rowOf(row: {
  readonly name: string
  readonly url: string
  readonly current: boolean
  readonly token: boolean
}) {
  return [row.current ? '*' : '', row.name, row.url, row.token ? 'with token' : 'without token']
}

function unknownContext(name: string): CliError {
  return new CliError(1, `unknown context ${quoteArg(name)}; see \`headwater contexts\``)
}
