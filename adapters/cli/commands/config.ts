import type { Basin, Stream } from '../../../src/index.ts'
import {
  basinConfigJson,
  decodeBasinReconfiguration,
  decodeStreamReconfiguration,
  streamConfigJson,
} from '../../../src/wire/json-config.ts'
import { parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import { CONFIG_DEFINITIONS, CONFIG_NOTES, jsonBytes, parseConfig } from '../config-options.ts'
import type { CliContext } from '../context.ts'
import { table } from '../output.ts'
import { NAME_NOTES, parseResourceName, streamOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

const DEFINITIONS = {
  name: { type: 'positional', required: true, description: 'BASIN, or BASIN/STREAM' },
  ...CONFIG_DEFINITIONS,
  json: { type: 'boolean', default: false, description: 'Print the configuration as JSON' },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'config')
  const name = parseResourceName(parsed.name, env)
  const change = parseConfig(parsed, name.stream === undefined)
  return { name, change, json: parsed.json, target: parseTarget(parsed, env) }
}

export const CONFIG = command({
  name: 'config',
  description: 'Print or change the configuration of a basin or a stream',
  notes: [
    'Options change settings; the others keep their values. Prints the resulting configuration. A longer',
    'retention keeps the records that are stored; a shorter one applies to later records.',
    ...CONFIG_NOTES,
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  run: ({ name, change, json, target }, context) =>
    withHeadwater({ target }, context, async (hw) => {
      const config = await (name.stream === undefined
        ? basinConfig(hw.basin(name.basin), change)
        : streamConfig(streamOf(hw, name), change))
      if (json) context.print(config)
      else for (const line of table(settingsOf(JSON.parse(config)))) context.print(line)
    }),
})

/** Changes the configuration if there is a change. Resolves to the configuration as JSON. */
async function basinConfig(basin: Basin, change: object | undefined): Promise<string> {
  if (change === undefined) return basinConfigJson(await basin.storedConfig())
  return basinConfigJson(await basin.reconfigureStored(decodeBasinReconfiguration(jsonBytes(change))))
}

async function streamConfig(stream: Stream, change: object | undefined): Promise<string> {
  if (change === undefined) return streamConfigJson(await stream.storedConfig())
  return streamConfigJson(await stream.reconfigureStored(decodeStreamReconfiguration(jsonBytes(change))))
}

/** Flattens an object to rows of paths and values. */
function settingsOf(value: unknown, path = ''): (readonly string[])[] {
  const isLeaf = typeof value !== 'object' || value === null || Object.keys(value).length === 0
  if (isLeaf) return [[path, typeof value === 'object' ? (value === null ? '-' : 'yes') : String(value)]]
  return Object.entries(value).flatMap(([name, member]) =>
    settingsOf(member, path === '' ? name : `${path}.${name}`),
  )
}
