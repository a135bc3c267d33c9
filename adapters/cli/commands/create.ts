import { type Headwater, HeadwaterError } from '../../../src/index.ts'
import {
  basinInfoJson,
  decodeEnsureBasin,
  decodeEnsureStream,
  streamInfoJson,
} from '../../../src/wire/json-resources.ts'
import { parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import { CONFIG_DEFINITIONS, CONFIG_NOTES, jsonBytes, parseConfig } from '../config-options.ts'
import type { CliContext } from '../context.ts'
import { creationText, retentionOf } from '../create-missing.ts'
import { CliError, quoteName } from '../errors.ts'
import { NAME_NOTES, nameText, parseResourceName, type ResourceName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

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
    withHeadwater({ target, mustExist: false }, context, async (hw) => {
      let info: string
      try {
        info = await createResource(hw, name, config)
      } catch (error) {
        if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
        const what = name.stream === undefined ? 'basin' : 'stream'
        throw new CliError(1, `${what} ${quoteName(nameText(name))} already exists`)
      }
      if (json) context.print(info)
      else context.printError(creationText(name, await retentionOf(hw, name)))
    }),
})

/** Creates a basin or a stream. Resolves to its info as JSON. */
async function createResource(
  hw: Headwater,
  { basin, stream }: ResourceName,
  config: object = {},
): Promise<string> {
  if (stream === undefined) {
    const decoded = decodeEnsureBasin(jsonBytes({ config })).config
    return basinInfoJson((await hw.createBasin(basin, decoded)).info)
  }
  const decoded = decodeEnsureStream(jsonBytes(config))
  return streamInfoJson((await hw.basin(basin).createStream(stream, decoded)).info)
}
