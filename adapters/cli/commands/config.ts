import { type Basin, type Headwater, HeadwaterError, type Stream } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { objectOf, parseJson } from '../../../src/wire/json.ts'
import {
  basinConfigJson,
  decodeBasinReconfiguration,
  decodeStreamReconfiguration,
  streamConfigJson,
} from '../../../src/wire/json-config.ts'
import {
  BASIN_INFO,
  decodeEnsureBasin,
  decodeEnsureStream,
  STREAM_INFO,
} from '../../../src/wire/json-resources.ts'
import { command, flag, positional, withValue } from '../command.ts'
import { creationText, retentionOf } from '../create-missing.ts'
import { CliError, quoteArg, quoteName, validateArgument } from '../errors.ts'
import { table } from '../output.ts'
import { nameText, parseResourceName, type ResourceName, streamOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { durationMs, parseRetention, retentionForm } from '../times.ts'

const BOOLEANS = ['true', 'false', 'default'] as const

/** Options that set the configuration of a basin or a stream. */
const CONFIG_DEFINITIONS = {
  retention: withValue('DURATION', 'How long records are kept: 12h, 30d, ... or forever'),
  'storage-class': withValue('CLASS', 'How fast appends are acknowledged', {
    choices: ['standard', 'express', 'default'],
  }),
  timestamping: withValue('MODE', 'Where timestamps come from', {
    choices: ['client-prefer', 'client-require', 'arrival', 'default'],
  }),
  uncapped: withValue('BOOLEAN', 'Whether timestamps may lie in the future', { choices: BOOLEANS }),
  'delete-on-empty': withValue(
    'DURATION',
    'Delete if empty, this long after the last append: 1h, ... or off',
  ),
  cipher: withValue('CIPHER', 'Basins only: of new streams', {
    choices: ['aes-256-gcm', 'aegis-256', 'none', 'default'],
  }),
  'create-on-append': withValue('BOOLEAN', 'Basins only: whether appends create streams', {
    choices: BOOLEANS,
  }),
  'create-on-read': withValue('BOOLEAN', 'Basins only: whether reads create streams', { choices: BOOLEANS }),
  config: withValue('JSON', 'JSON of the HTTP API, instead of the options above'),
} as const

const CONFIG_NOTES = [
  'For a basin, the stream options set the defaults of streams that are created in it. The value default',
  'returns a setting to its default.',
]

const NAME = positional('BASIN, or BASIN/STREAM')

export const CREATE = command({
  description: 'Create a basin or a stream',
  examples: [
    'headwater create app-logs --create-on-append true',
    'headwater create app-logs/web/1 --retention 30d',
    'headwater create app-logs/audit --retention forever',
  ],
  notes: [
    'A stream without a retention has that of its basin, else that of the server (serve --retention), or in',
    'a storage (--storage) keeps its records forever.',
    ...CONFIG_NOTES,
  ],
  definitions: {
    name: NAME,
    ...CONFIG_DEFINITIONS,
    json: flag('Print the new basin or stream as JSON'),
    ...TARGET_DEFINITIONS,
  },
  parse(values, { env }) {
    const name = parseResourceName(values.name, env)
    const config = parseConfig(values, name.stream === undefined)
    return { name, config, json: values.json, target: parseTarget(values, env) }
  },
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
    return BASIN_INFO.text((await hw.createBasin(basin, decoded)).info)
  }
  const decoded = decodeEnsureStream(jsonBytes(config))
  return STREAM_INFO.text((await hw.basin(basin).createStream(stream, decoded)).info)
}

export const CONFIG = command({
  description: 'Print or change the configuration of a basin or a stream',
  examples: [
    'headwater config app-logs/web/1',
    'headwater config app-logs/web/1 --retention 30d',
    'headwater config app-logs --retention default --create-on-append true',
  ],
  notes: [
    'Options change settings; the others keep their values. Prints the resulting configuration. A longer',
    'retention keeps the records that are stored; a shorter one applies to later records.',
    ...CONFIG_NOTES,
  ],
  definitions: {
    name: NAME,
    ...CONFIG_DEFINITIONS,
    json: flag('Print the configuration as JSON'),
    ...TARGET_DEFINITIONS,
  },
  parse(values, { env }) {
    const name = parseResourceName(values.name, env)
    const change = parseConfig(values, name.stream === undefined)
    return { name, change, json: values.json, target: parseTarget(values, env) }
  },
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

type ConfigValues = { readonly [Name in keyof typeof CONFIG_DEFINITIONS]?: string | undefined }

/**
 * Returns the configuration that the options set, as in the HTTP API: null returns a setting to its default.
 * Undefined if no option is given.
 *
 * @throws CliError with exit code 2.
 */
function parseConfig(values: ConfigValues, isBasin: boolean): object | undefined {
  const names = Object.keys(CONFIG_DEFINITIONS) as (keyof ConfigValues)[]
  const given = names.filter((name) => values[name] !== undefined)
  if (given.length === 0) return undefined
  if (values.config !== undefined) {
    if (given.length > 1) throw new CliError(2, `\`--config\` cannot be combined with \`--${given[0]}\``)
    validateArgument(() => objectOf(parseJson(values.config!), 'the value'), '`--config`')
    return JSON.parse(values.config) as object
  }
  const basinOnly = BASIN_ONLY.find((name) => values[name] !== undefined)
  if (!isBasin && basinOnly !== undefined) {
    throw new CliError(2, `\`--${basinOnly}\` is a setting of basins, not of streams`)
  }
  const stream = streamSettings(values)
  if (!isBasin) return stream
  return {
    ...(Object.keys(stream).length > 0 && { default_stream_config: stream }),
    ...(values.cipher !== undefined && { stream_cipher: cipherOf(values.cipher) }),
    ...optional('create_stream_on_append', values['create-on-append'], isTrue),
    ...optional('create_stream_on_read', values['create-on-read'], isTrue),
  }
}

const BASIN_ONLY = ['cipher', 'create-on-append', 'create-on-read'] as const

function streamSettings(values: ConfigValues): object {
  const mode = optional('mode', values.timestamping)
  const uncapped = optional('uncapped', values.uncapped, isTrue)
  const timestamping = { ...mode, ...uncapped }
  return {
    ...optional('retention_policy', values.retention, (text) => retentionForm(parseRetention(text))),
    ...optional('storage_class', values['storage-class']),
    ...(Object.keys(timestamping).length > 0 && { timestamping }),
    ...optional('delete_on_empty', values['delete-on-empty'], (text) =>
      text === 'off' ? { min_age_secs: 0 } : { min_age_secs: secondsOf(text) },
    ),
  }
}

/** Encodes a configuration for the decoders of the HTTP API. */
function jsonBytes(form: object): Uint8Array {
  return utf8(JSON.stringify(form))
}

/** The member, null for the value `default`; nothing for an option that is not given. */
function optional(
  member: string,
  text: string | undefined,
  parse: (text: string) => unknown = (same) => same,
): object {
  if (text === undefined) return {}
  return { [member]: text === 'default' ? null : parse(text) }
}

function cipherOf(text: string): string | null {
  return text === 'none' || text === 'default' ? null : text
}

function secondsOf(text: string): number {
  const ms = durationMs(text)
  if (ms !== undefined) return ms / 1000
  throw new CliError(
    2,
    `invalid duration ${quoteArg(text)}; \`--delete-on-empty\` must be a positive integer with s, m, ` +
      'h or d, such as 12h, or `off`',
  )
}

function isTrue(text: string): boolean {
  return text === 'true'
}
