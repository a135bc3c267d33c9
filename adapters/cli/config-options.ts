import { utf8 } from '../../src/model/bytes.ts'
import { objectOf } from '../../src/wire/json-members.ts'
import { readJsonText } from '../../src/wire/json-reader.ts'
import { durationMs } from './arguments.ts'
import { CliError, quoteArg, validateArgument } from './errors.ts'
import { parseRetention, retentionForm } from './retention.ts'

/** Options that set the configuration of a basin or a stream. */
export const CONFIG_DEFINITIONS = {
  retention: { type: 'string', description: 'How long records are kept: 12h, 30d, ... or forever' },
  'storage-class': { type: 'string', description: 'standard or express' },
  timestamping: { type: 'string', description: 'client-prefer, client-require or arrival' },
  uncapped: { type: 'string', description: 'Whether timestamps may lie in the future: true or false' },
  'delete-on-empty': {
    type: 'string',
    description: 'Delete if empty, this long after the last append: 1h, ... or off',
  },
  cipher: { type: 'string', description: 'Basins only: aes-256-gcm, aegis-256 or none, for new streams' },
  'create-on-append': { type: 'string', description: 'Basins only: appends create streams: true or false' },
  'create-on-read': { type: 'string', description: 'Basins only: reads create streams: true or false' },
  config: { type: 'string', description: 'JSON of the HTTP API, instead of the options above' },
} as const

export const CONFIG_NOTES = [
  'For a basin, the stream options set the defaults of streams that are created in it. The value default',
  'returns a setting to its default.',
]

export type ConfigValues = { readonly [Name in keyof typeof CONFIG_DEFINITIONS]?: string | undefined }

/**
 * Returns the configuration that the options set, as in the HTTP API: null returns a setting to its default.
 * Undefined if no option is given.
 *
 * @throws CliError with exit code 2.
 */
export function parseConfig(values: ConfigValues, isBasin: boolean): object | undefined {
  const names = Object.keys(CONFIG_DEFINITIONS) as (keyof ConfigValues)[]
  const given = names.filter((name) => values[name] !== undefined)
  if (given.length === 0) return undefined
  if (values.config !== undefined) {
    if (given.length > 1) throw new CliError(2, `\`--config\` cannot be combined with \`--${given[0]}\``)
    validateArgument(() => objectOf(readJsonText(values.config!), 'the value'), '`--config`')
    return JSON.parse(values.config) as object
  }
  const basinOnly = BASIN_ONLY.find((name) => values[name] !== undefined)
  if (!isBasin && basinOnly !== undefined) {
    throw new CliError(2, `\`--${basinOnly}\` is a setting of basins, not of streams`)
  }
  const stream = streamConfig(values)
  if (!isBasin) return stream
  return {
    ...(Object.keys(stream).length > 0 && { default_stream_config: stream }),
    ...(values.cipher !== undefined && { stream_cipher: cipherOf(values.cipher) }),
    ...optional('create_stream_on_append', values['create-on-append'], (text) =>
      flag(text, '--create-on-append'),
    ),
    ...optional('create_stream_on_read', values['create-on-read'], (text) => flag(text, '--create-on-read')),
  }
}

const BASIN_ONLY = ['cipher', 'create-on-append', 'create-on-read'] as const

function streamConfig(values: ConfigValues): object {
  const mode = optional('mode', values.timestamping, (text) =>
    choice(text, '--timestamping', ['client-prefer', 'client-require', 'arrival']),
  )
  const uncapped = optional('uncapped', values.uncapped, (text) => flag(text, '--uncapped'))
  const timestamping = { ...mode, ...uncapped }
  return {
    ...optional('retention_policy', values.retention, (text) => retentionForm(parseRetention(text))),
    ...optional('storage_class', values['storage-class'], (text) =>
      choice(text, '--storage-class', ['standard', 'express']),
    ),
    ...(Object.keys(timestamping).length > 0 && { timestamping }),
    ...optional('delete_on_empty', values['delete-on-empty'], (text) =>
      text === 'off' ? { min_age_secs: 0 } : { min_age_secs: secondsOf(text) },
    ),
  }
}

/** Encodes a configuration for the decoders of the HTTP API. */
export function jsonBytes(form: object): Uint8Array {
  return utf8(JSON.stringify(form))
}

/** The member, null for the value `default`; nothing for an option that is not given. */
function optional(member: string, text: string | undefined, parse: (text: string) => unknown): object {
  if (text === undefined) return {}
  return { [member]: text === 'default' ? null : parse(text) }
}

function cipherOf(text: string): string | null {
  return text === 'none' || text === 'default'
    ? null
    : choice(text, '--cipher', ['aes-256-gcm', 'aegis-256', 'none'])
}

function secondsOf(text: string): number {
  const ms = durationMs(text)
  if (ms !== undefined) return ms / 1000
  throw new CliError(
    2,
    `invalid duration ${quoteArg(text)}; \`--delete-on-empty\` must be a positive integer with s, m, h or d, such as 12h, or \`off\``,
  )
}

function flag(text: string, option: string): boolean {
  return choice(text, option, ['true', 'false']) === 'true'
}

function choice(text: string, option: string, allowed: readonly string[]): string {
  if (allowed.includes(text)) return text
  throw new CliError(2, `invalid value ${quoteArg(text)}; \`${option}\` must be ${allowed.join(' or ')}`)
}
