import { type ArgsDef, type CommandDef, defineCommand, renderUsage } from 'citty'
import packageJson from '../../package.json' with { type: 'json' }
import type { CliContext } from './cli-context.ts'
import { exportCommand } from './export-command.ts'
import { importCommand } from './import-command.ts'
import { parseServeArguments, SERVE_NOTES, serveDefinitions } from './serve-arguments.ts'
import { serveCommand } from './serve-command.ts'
import type { StorageKind } from './storages.ts'
import { parseIssueArguments, parseListArguments, parseRevokeArguments } from './token-arguments.ts'
import { issueCommand, listCommand, revokeCommand } from './token-commands.ts'
import {
  ISSUE_DEFINITIONS,
  ISSUE_NOTES,
  LIST_DEFINITIONS,
  PLACE_NOTES,
  REVOKE_DEFINITIONS,
} from './token-definitions.ts'
import { parseExportArguments, parseImportArguments } from './transfer-arguments.ts'
import { EXPORT_DEFINITIONS, EXPORT_NOTES, IMPORT_DEFINITIONS, IMPORT_NOTES } from './transfer-definitions.ts'
import { parseVerifyArguments, VERIFY_DEFINITIONS, VERIFY_NOTES } from './verify-arguments.ts'
import { verifyCommand } from './verify-command.ts'

/** A command or a group of commands: what its `--help` shows, and what runs. */
export interface Command {
  readonly name: string
  readonly description: string
  /** Lines below the options in its help. */
  readonly notes?: readonly string[]
  readonly definitions?: (storages: readonly StorageKind[]) => ArgsDef
  readonly run?: (args: readonly string[], context: CliContext) => Promise<void>
  readonly commands?: readonly Command[]
}

const TOKEN: Command = {
  name: 'token',
  description: 'Issue, list and revoke access tokens',
  commands: [
    {
      name: 'issue',
      description: 'Issue an access token and print it: this is the only time that it is told',
      notes: ISSUE_NOTES,
      definitions: () => ISSUE_DEFINITIONS,
      run: (args, context) => issueCommand(parseIssueArguments(args, context), context),
    },
    {
      name: 'list',
      description: 'List access tokens: what they permit, not the tokens themselves',
      notes: PLACE_NOTES,
      definitions: () => LIST_DEFINITIONS,
      run: (args, context) => listCommand(parseListArguments(args, context), context),
    },
    {
      name: 'revoke',
      description: 'Revoke access tokens by their ids: they are refused from then on',
      notes: PLACE_NOTES,
      definitions: () => REVOKE_DEFINITIONS,
      run: (args, context) => revokeCommand(parseRevokeArguments(args, context), context),
    },
  ],
}

export const HEADWATER: Command = {
  name: 'headwater',
  description: 'Durable streams',
  commands: [
    {
      name: 'serve',
      description: 'Serve the wire protocol, HTTP/1.1 and HTTP/2 on one port',
      notes: SERVE_NOTES,
      definitions: serveDefinitions,
      run: (args, context) => serveCommand(parseServeArguments(args, context.storages), context),
    },
    TOKEN,
    {
      name: 'export',
      description: 'Write basins, streams and records as lines of JSON',
      notes: EXPORT_NOTES,
      definitions: () => EXPORT_DEFINITIONS,
      run: (args, context) => exportCommand(parseExportArguments(args, context), context),
    },
    {
      name: 'import',
      description: 'Bring in what was exported: records keep their positions and timestamps',
      notes: IMPORT_NOTES,
      definitions: () => IMPORT_DEFINITIONS,
      run: (args, context) => importCommand(parseImportArguments(args, context), context),
    },
    {
      name: 'verify',
      description: 'Read all that a directory holds and check every checksum',
      notes: VERIFY_NOTES,
      definitions: () => VERIFY_DEFINITIONS,
      run: (args, context) => verifyCommand(parseVerifyArguments(args), context),
    },
  ],
}

/** @param path The names of the commands above, separated by spaces. */
export async function usage(
  command: Command,
  path: string,
  storages: readonly StorageKind[],
): Promise<string> {
  const parent = path === '' ? undefined : defineCommand({ meta: { name: path } })
  const text = await renderUsage(definitionOf(command, storages), parent)
  return [text.trimEnd(), ...(command.notes ? ['', ...command.notes] : [])].join('\n')
}

function definitionOf(command: Command, storages: readonly StorageKind[]): CommandDef<ArgsDef> {
  const { name, description, definitions, commands } = command
  return defineCommand<ArgsDef>({
    meta: { name, version: packageJson.version, description },
    ...(definitions && { args: definitions(storages) }),
    ...(commands && {
      subCommands: Object.fromEntries(commands.map((sub) => [sub.name, definitionOf(sub, storages)])),
    }),
  })
}
