import { parseArgs } from 'citty'
import { CliError, STORAGE_NAMES, type StorageName } from './cli-context.ts'

export const SERVE_ARGS = {
  port: { type: 'string', default: '8787', description: 'TCP port; 0 takes any that is free' },
  host: { type: 'string', default: '127.0.0.1', description: 'Address to listen on' },
  storage: {
    type: 'string',
    default: 'memory',
    description: `Where streams are kept: ${STORAGE_NAMES.join(', ')}`,
  },
  open: {
    type: 'boolean',
    default: false,
    description: 'Serve everybody who can connect, without access tokens',
  },
} as const

export interface ServeArguments {
  readonly port: number
  readonly host: string
  readonly storage: StorageName
  readonly open: boolean
}

/** @throws CliError with exit code 2 and what to do instead. */
export function parseServeArguments(args: readonly string[]): ServeArguments {
  const {
    _: positional,
    port,
    host,
    storage,
    open,
    ...unknown
  } = parseArgs<typeof SERVE_ARGS>([...args], SERVE_ARGS)
  const [stray] = positional
  if (stray !== undefined) throw new CliError(2, `unexpected argument ${stray}. See headwater serve --help`)
  // The parser takes any text for yes, and that option must not be on by mistake.
  const odd = args.find((arg) => /^--open=(?!true$|false$)/.test(arg))
  if (odd !== undefined) throw new CliError(2, `${odd}: --open takes no value but true or false`)
  // It also lets pass what it does not know.
  const [option] = Object.keys(unknown)
  if (option !== undefined) throw new CliError(2, `unknown option --${option}. See headwater serve --help`)
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new CliError(2, `--port must be a number from 0 to 65535, not ${port || 'nothing'}`)
  }
  if (host === '') throw new CliError(2, '--host must not be empty')
  const storageName = STORAGE_NAMES.find((name) => name === storage)
  if (!storageName) {
    throw new CliError(2, `unknown storage ${storage || '(none)'}. Allowed: ${STORAGE_NAMES.join(', ')}`)
  }
  return { port: Number(port), host, storage: storageName, open }
}
