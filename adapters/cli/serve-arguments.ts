import { parseArgs } from 'citty'
import { checkArguments } from './check-arguments.ts'
import { CliError } from './failure.ts'
import { shown } from './printable.ts'
import { type StorageKind, storageNames } from './storages.ts'

export function serveDefinitions(storages: readonly StorageKind[]) {
  return {
    port: { type: 'string', default: '8787', description: 'TCP port; 0 takes any that is free' },
    host: { type: 'string', default: '127.0.0.1', description: 'Address to listen on' },
    storage: {
      type: 'string',
      description: `Where streams are kept: ${storageNames(storages)}. Default: ${storages[0]!.name}, or what takes --dir`,
    },
    dir: { type: 'string', description: 'Directory of a storage that lives in one' },
    open: {
      type: 'boolean',
      default: false,
      description: 'Serve everybody who can connect, without access tokens',
    },
    'root-token': { type: 'string', description: 'Set the token that permits everything: see below' },
  } as const
}

export const SERVE_NOTES = [
  'Without --open every request needs an access token. The first start on a storage makes the root token, which permits everything, and prints',
  'it, only then. --root-token, or the environment variable HEADWATER_ROOT_TOKEN, sets it instead and replaces an earlier one: 16 to 1,024',
  'characters of visible ASCII. The option has precedence, but other users of the machine can see it in the list of processes.',
]

export interface ServeArguments {
  readonly port: number
  readonly host: string
  readonly storage: string | undefined
  readonly directory: string | undefined
  readonly open: boolean
  readonly rootToken: string | undefined
}

/** @throws CliError with exit code 2 and what to do instead. */
export function parseServeArguments(
  args: readonly string[],
  storages: readonly StorageKind[],
): ServeArguments {
  const definitions = serveDefinitions(storages)
  checkArguments(args, definitions, 'serve')
  const parsed = parseArgs<typeof definitions>([...args], definitions)
  const { port, host, storage, dir: directory, open, 'root-token': rootToken } = parsed
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new CliError(2, `--port must be a number from 0 to 65535, not ${shown(port)}`)
  }
  if (host === '') throw new CliError(2, '--host must not be empty')
  if (open && rootToken !== undefined) {
    throw new CliError(2, '--root-token does not go with --open, which demands no token')
  }
  return { port: Number(port), host, storage, directory, open, rootToken }
}
