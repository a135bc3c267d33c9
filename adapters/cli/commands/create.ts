import { parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import { CONFIG_DEFINITIONS, CONFIG_NOTES, parseConfig } from '../config-options.ts'
import type { CliContext } from '../context.ts'
import { createResource, creationText, retentionOf } from '../create-missing.ts'
import { CliError, quoteName } from '../errors.ts'
import { NAME_NOTES, nameText, parseResourceName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withClient } from '../target.ts'

const DEFINITIONS = {
  name: { type: 'positional', required: true, description: 'BASIN, or BASIN/STREAM' },
  ...CONFIG_DEFINITIONS,
  json: { type: 'boolean', default: false, description: 'Print the new basin or stream as JSON' },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'create')
  const name = parseResourceName(parsed.name, env)
  const config = parseConfig(parsed, name.stream === undefined)
  return { name, config, json: parsed.json, target: parseTarget(parsed, env) }
}

export const CREATE = command({
  name: 'create',
  description: 'Create a basin or a stream',
  notes: [
    'Example: headwater create app-logs/web/1 --retention 30d',
    'A stream without a retention has that of its basin, else that of the server (serve --retention), or in a',
    'storage (--storage) keeps its records forever.',
    ...CONFIG_NOTES,
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run: ({ name, config, json, target }, context) =>
    withClient({ target, mustExist: false }, context, async (client) => {
      const info = await createResource(client, name, config)
      const what = name.stream === undefined ? 'basin' : 'stream'
      if (info === undefined) throw new CliError(1, `${what} ${quoteName(nameText(name))} already exists`)
      if (json) context.print(info)
      else context.printError(creationText(name, await retentionOf(client, name)))
    }),
})
