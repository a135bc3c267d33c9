import { Ajv, type ErrorObject } from 'ajv'
import { parse as parseYaml } from 'yaml'
import type { BasinConfigInput, StreamConfigInput } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import { BASIN_CONFIG_INPUT, STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'

/** Basins and streams with their configurations, as a file declares them. */
export interface ResourceSpec {
  readonly basins: readonly BasinSpec[]
}

interface BasinSpec {
  readonly name: string
  /** The members that the file sets. */
  readonly config: BasinConfigInput
  readonly streams: readonly StreamSpec[]
}

interface StreamSpec {
  readonly name: string
  /** The members that the file sets. */
  readonly config: StreamConfigInput
}

const object = (description: string, properties: object, required: readonly string[] = []) => ({
  type: 'object',
  description,
  properties,
  required,
  additionalProperties: false,
})

const STREAM_CONFIG = object('The configuration of a stream. What is absent stays as it is.', {
  storage_class: { enum: ['standard', 'express'], description: 'A label; it has no effect.' },
  retention_policy: {
    type: 'string',
    description: 'How long records are kept: "infinite", or a duration such as "7days" or "12h".',
    examples: ['infinite', '7days', '12h'],
  },
  timestamping: object('How records get their timestamps.', {
    mode: { enum: ['client-prefer', 'client-require', 'arrival'] },
    uncapped: { type: 'boolean', description: 'Whether a timestamp may lie in the future.' },
  }),
  delete_on_empty: object('The time after which a stream without records is deleted.', {
    min_age: { type: 'string', description: 'A duration such as "1day"; "0s" is never.', examples: ['1day'] },
  }),
})

const BASIN_CONFIG = object('The configuration of a basin. What is absent stays as it is.', {
  default_stream_config: STREAM_CONFIG,
  create_stream_on_append: { type: 'boolean', description: 'Whether an append creates a missing stream.' },
  create_stream_on_read: { type: 'boolean', description: 'Whether a read creates a missing stream.' },
  stream_cipher: { enum: ['aegis-256', 'aes-256-gcm'], description: 'The cipher of new streams.' },
})

const name = { type: 'string', minLength: 1 }
const STREAM = object('A stream.', { name, config: STREAM_CONFIG }, ['name'])
const BASIN = object('A basin.', { name, config: BASIN_CONFIG, streams: { type: 'array', items: STREAM } }, [
  'name',
])

/** The JSON schema of a file, which editors use. The format is that of the protocol's open server. */
export const RESOURCE_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Basins and streams',
  ...object('What `headwater apply` and `headwater serve --init-file` create.', {
    $schema: { type: 'string' },
    basins: { type: 'array', items: BASIN },
  }),
} as const

/** The configuration of a stream in the file: durations are text. */
interface StreamEntry {
  readonly retention_policy?: string
  readonly delete_on_empty?: { readonly min_age?: string }
}

interface FileContent {
  readonly basins?: readonly {
    readonly name: string
    readonly config?: { readonly default_stream_config?: StreamEntry }
    readonly streams?: readonly { readonly name: string; readonly config?: StreamEntry }[]
  }[]
}

/**
 * Parses a file of basins and streams, in JSON or YAML.
 *
 * @throws HeadwaterError `invalid`, whose `field` is the place in the file.
 */
export function parseResources(text: string): ResourceSpec {
  const content = withoutNulls(contentOf(text))
  const validate = new Ajv({ strict: false }).compile<FileContent>(RESOURCE_SCHEMA)
  if (!validate(content)) throw specError(validate.errors![0]!)
  const { basins = [] } = content
  assertUnique(basins, 'basins')
  return {
    basins: basins.map(({ name, config = {}, streams = [] }, i) => {
      const path = `basins/${i}`
      assertUnique(streams, `${path}/streams`)
      return {
        name,
        config: basinConfig(config, `${path}/config`),
        streams: streams.map((stream, j) => ({
          name: stream.name,
          config: STREAM_CONFIG_INPUT.read(
            wireForm(stream.config ?? {}, `${path}/streams/${j}/config`),
            path,
          ),
        })),
      }
    }),
  }
}

/** JSON is YAML, but the messages of `JSON.parse` and of a YAML parser about it differ. */
function contentOf(text: string): unknown {
  try {
    return text.trimStart().startsWith('{') ? JSON.parse(text) : parseYaml(text)
  } catch (error) {
    throw invalid(`the file is neither JSON nor YAML: ${(error as Error).message}`, 'basins')
  }
}

/** In YAML, a member without a value is null. It counts as absent. */
function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).filter(([, member]) => member !== null)
  return Object.fromEntries(members.map(([name, member]) => [name, withoutNulls(member)]))
}

function specError({ instancePath, keyword, params, message }: ErrorObject) {
  const path = instancePath.slice(1)
  if (keyword !== 'additionalProperties') return invalid(`${path || 'the file'} ${message}`, path || 'basins')
  const member = params.additionalProperty as string
  return invalid(
    `${path || 'the file'} has an unknown member \`${member}\``,
    path ? `${path}/${member}` : member,
  )
}

function assertUnique(resources: readonly { readonly name: string }[], path: string): void {
  const names = resources.map(({ name }) => name)
  const index = names.findIndex((name, i) => names.indexOf(name) < i)
  if (index >= 0) throw invalid(`${path} has two entries named \`${names[index]}\``, `${path}/${index}/name`)
}

function basinConfig(
  { default_stream_config: defaults, ...config }: { readonly default_stream_config?: StreamEntry },
  path: string,
): BasinConfigInput {
  const ofStreams = defaults && wireForm(defaults, `${path}/default_stream_config`)
  return BASIN_CONFIG_INPUT.read({ ...config, ...(ofStreams && { default_stream_config: ofStreams }) }, path)
}

/** Returns a configuration as requests have it, with durations in seconds. */
function wireForm(
  { retention_policy: retention, delete_on_empty: deletion, ...config }: StreamEntry,
  path: string,
) {
  return {
    ...config,
    ...(retention !== undefined && {
      retention_policy:
        retention.toLowerCase() === 'infinite'
          ? { infinite: {} }
          : { age: seconds(retention, `${path}/retention_policy`) },
    }),
    ...(deletion?.min_age !== undefined && {
      delete_on_empty: { min_age_secs: seconds(deletion.min_age, `${path}/delete_on_empty/min_age`) },
    }),
  }
}

const DAY = 86_400
const UNITS: readonly (readonly [names: RegExp, seconds: number])[] = [
  [/^s(ecs?|econds?)?$/, 1],
  [/^m(ins?|inutes?)?$/, 60],
  [/^h(rs?|ours?)?$/, 3_600],
  [/^d(ays?)?$/, DAY],
  [/^w(ks?|eeks?)?$/, 7 * DAY],
  [/^(M|months?)$/, 2_630_016],
  [/^y(rs?|ears?)?$/, 31_557_600],
]

/** Parses a duration as the open server does: `7days`, `2h 30m`. */
function seconds(text: string, path: string): number {
  const parts = [...text.matchAll(/(\d+)\s*([a-zA-Z]+)\s*/g)]
  const sizes = parts.map(([, count, unit]) => {
    return Number(count) * (UNITS.find(([names]) => names.test(unit!))?.[1] ?? Number.NaN)
  })
  const sum = sizes.reduce((total, size) => total + size, 0)
  if (parts.map(([part]) => part).join('') !== text || text === '' || !Number.isSafeInteger(sum)) {
    throw invalid(`${path} must be a duration such as 7days or "2h 30m", not ${JSON.stringify(text)}`, path)
  }
  return sum
}
