import { createInterface } from 'node:readline'
import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import { type Headwater, HeadwaterError } from '../../../src/index.ts'
import { utf8 } from '../../../src/model/bytes.ts'
import { LOCATION } from '../../../src/model/info.ts'
import { arrayOf, objectOf, stringOf } from '../../../src/wire/json.ts'
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
import { decoded } from '../../client/errors.ts'
import type { CliContext } from '../context.ts'
import { creationText, retentionOf } from '../creation.ts'
import { CliError, printable, quoteArg, quoteName } from '../errors.ts'
import { targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { type Connected, withHeadwater } from '../target.ts'
import {
  durationMs,
  fail,
  nameText,
  type ResourceName,
  resourceName,
  resourceOf,
  retention,
  streamOf,
} from '../values.ts'

const NAME = 'BASIN, or BASIN/STREAM'
const BOOLEANS = ['true', 'false', 'default'] as const

const CLASSES = ['standard', 'express', 'default'] as const
const MODES = ['client-prefer', 'client-require', 'arrival', 'default'] as const
const CIPHERS = ['aes-256-gcm', 'aegis-256', 'none', 'default'] as const

/** Adds the options that set the configuration of a basin or a stream. */
function configOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  const choice = <const Flags extends string, const Choices extends readonly string[]>(
    flags: Flags,
    description: string,
    choices: Choices,
  ) => new Option(flags, description).choices(choices)
  return command
    .option('--retention <DURATION>', 'How long records are kept: 12h, 30d, ... or forever', retentionForm)
    .addOption(choice('--storage-class <CLASS>', 'How fast appends are acknowledged', CLASSES))
    .addOption(choice('--timestamping <MODE>', 'Where timestamps come from', MODES))
    .addOption(choice('--uncapped <BOOLEAN>', 'Whether timestamps may lie in the future', BOOLEANS))
    .option(
      '--delete-on-empty <DURATION>',
      'Delete if empty, this long after the last append: 1h, ... or off',
      deleteOnEmptyForm,
    )
    .addOption(choice('--cipher <CIPHER>', 'Basins only: of new streams', CIPHERS))
    .addOption(
      choice('--create-on-append <BOOLEAN>', 'Basins only: whether appends create streams', BOOLEANS),
    )
    .addOption(choice('--create-on-read <BOOLEAN>', 'Basins only: whether reads create streams', BOOLEANS))
}

type Default = 'default'

function retentionForm(text: string): object | Default {
  if (text === 'default') return text
  const policy = retention(text)
  return policy === 'infinite' ? { infinite: {} } : { age: policy.ageSeconds }
}

function deleteOnEmptyForm(text: string): object | Default {
  if (text === 'default') return text
  const ms = text === 'off' ? 0 : durationMs(text)
  if (ms !== undefined) return { min_age_secs: ms / 1000 }
  return fail('It must be a positive integer with s, m, h or d, such as 12h, or `off`')
}

type ConfigOptions = ReturnType<ReturnType<typeof configOptions<[], Record<never, never>>>['opts']>

/**
 * Returns the configuration that the options set, as in the HTTP API. Undefined if no option is given.
 *
 * @throws CliError with exit code 2.
 */
function givenConfig(options: ConfigOptions, { stream }: ResourceName): object | undefined {
  const { cipher, createOnAppend, createOnRead } = options
  // Null returns a setting to its default.
  const setting = (value: string | object | undefined) =>
    value === 'default' || value === 'none' ? null : value
  const flag = (text: (typeof BOOLEANS)[number] | undefined) =>
    text === undefined || text === 'default' ? setting(text) : text === 'true'
  const streamConfig = given({
    retention_policy: setting(options.retention),
    storage_class: setting(options.storageClass),
    timestamping: given({ mode: setting(options.timestamping), uncapped: flag(options.uncapped) }),
    delete_on_empty: setting(options.deleteOnEmpty),
  })
  const ofBasins = given({
    stream_cipher: setting(cipher),
    create_stream_on_append: flag(createOnAppend),
    create_stream_on_read: flag(createOnRead),
  })
  if (stream === undefined) return given({ default_stream_config: streamConfig, ...ofBasins })
  if (ofBasins === undefined) return streamConfig
  throw new CliError(
    2,
    '`--cipher`, `--create-on-append` and `--create-on-read` are settings of basins, not of streams',
  )
}

/** Leaves out members that are undefined. Undefined if none is left. */
function given(form: object): object | undefined {
  const text = JSON.stringify(form)
  return text === '{}' ? undefined : JSON.parse(text)
}

/** Encodes a configuration for the decoders of the HTTP API. */
function jsonBytes(form: object): Uint8Array {
  return utf8(JSON.stringify(form))
}

const CONFIG_NOTES = [
  'For a basin, the stream options set the defaults of streams that are created in it. The value default',
  'returns a setting to its default.',
]

export const createCommand = (context: CliContext) =>
  configOptions(
    targetCommand('create', {
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
    }).argument('<NAME>', NAME, resourceName(context)),
  )
    .option('--location <NAME>', 'Basins only: where it is stored; see `headwater locations`')
    .option('--json', 'Print the new basin or stream as JSON')
    .action((name, options) => {
      const config = givenConfig(options, name) ?? {}
      const { location } = options
      if (location !== undefined && name.stream !== undefined) {
        throw new CliError(2, '`--location` is for basins, not for streams')
      }
      const create = async (hw: Headwater, { server, signal }: Connected) => {
        try {
          if (location !== undefined && server === undefined && location !== LOCATION.name) {
            throw new CliError(1, `unknown location ${quoteArg(location)}; expected ${LOCATION.name}`)
          }
          const info =
            location === undefined || server === undefined
              ? await createResource(hw, name, config)
              : JSON.stringify(
                  await server.request('/basins', signal, { basin: name.basin, location, config }),
                )
          if (options.json) context.print(info)
          else context.printError(creationText(name, await retentionOf(hw, name)))
        } catch (error) {
          if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
          const what = name.stream === undefined ? 'basin' : 'stream'
          throw new CliError(1, `${what} ${quoteName(nameText(name))} already exists`)
        }
      }
      return withHeadwater(options, context, create, { mustExist: false })
    })

/** Creates a basin or a stream. Resolves to its info as JSON. */
async function createResource(hw: Headwater, { basin, stream }: ResourceName, config: object) {
  if (stream === undefined) {
    const decoded = decodeEnsureBasin(jsonBytes({ config })).config
    return BASIN_INFO.text((await hw.createBasin(basin, decoded)).info)
  }
  const decoded = decodeEnsureStream(jsonBytes(config))
  return STREAM_INFO.text((await hw.basin(basin).createStream(stream, decoded)).info)
}

export const configCommand = (context: CliContext) =>
  configOptions(
    targetCommand('config', {
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
    }).argument('<NAME>', NAME, resourceName(context)),
  )
    .option('--json', 'Print the configuration as JSON')
    .action((name, options) => {
      const change = givenConfig(options, name)
      return withHeadwater(options, context, async (hw) => {
        const config = await configured(hw, name, change && jsonBytes(change))
        if (options.json) context.print(config)
        else printTable(settingsOf(JSON.parse(config)), context)
      })
    })

/** Changes the configuration if there is a change. Resolves to the configuration as JSON. */
async function configured(hw: Headwater, name: ResourceName, change: Uint8Array | undefined) {
  if (name.stream === undefined) {
    const basin = hw.basin(name.basin)
    if (change === undefined) return basinConfigJson(await basin.storedConfig())
    return basinConfigJson(await basin.reconfigureStored(decodeBasinReconfiguration(change)))
  }
  const stream = streamOf(hw, name)
  if (change === undefined) return streamConfigJson(await stream.storedConfig())
  return streamConfigJson(await stream.reconfigureStored(decodeStreamReconfiguration(change)))
}

/** Flattens an object to rows of paths and values. */
function settingsOf(value: unknown, path = ''): (readonly string[])[] {
  if (typeof value !== 'object') return [[path, String(value)]]
  if (value === null) return [[path, '-']]
  const members = Object.entries(value)
  if (members.length === 0) return [[path, 'yes']]
  return members.flatMap(([name, member]) => settingsOf(member, path === '' ? name : `${path}.${name}`))
}

export const locationsCommand = (context: CliContext) =>
  targetCommand('locations', {
    description: 'List the locations of basins',
    examples: ['headwater locations', 'headwater create my-basin --location aws:us-east-1'],
    notes: ['Servers and storages of headwater have one.'],
  }).action((options) =>
    withHeadwater(options, context, async (_, { server, signal }) => {
      const reply = server === undefined ? [LOCATION] : await server.request('/locations', signal)
      for (const name of decoded(false, () => namesOf(reply))) context.print(printable(name))
    }),
  )

function namesOf(locations: unknown): readonly string[] {
  const nameOf = (location: unknown) => stringOf(objectOf(location, 'location').name, 'name')
  return arrayOf(locations, 'locations').map(nameOf)
}

export const deleteCommand = (context: CliContext) =>
  targetCommand('delete', {
    description: 'Delete streams, or basins with all their streams',
    examples: ['headwater delete app-logs/web/1 app-logs/web/2', 'headwater delete app-logs'],
    notes: [
      'Asks first if standard input is a terminal.',
      'A server deletes the streams of a basin in the background; with --storage, the command waits for that.',
    ],
  })
    .argument(
      '<NAME...>',
      'BASIN, or BASIN/STREAM; may be repeated',
      (text: string, before: ResourceName[] | undefined) => [...(before ?? []), resourceName(context)(text)],
    )
    .option('--force', 'Do not ask')
    .action(async (names, options) => {
      if (!options.force && !(await isConfirmed(names.map(nameText), context))) {
        throw new CliError(1, 'nothing was deleted')
      }
      await withHeadwater(options, context, async (hw, { server, signal }) => {
        for (const name of names) {
          await resourceOf(hw, name).delete()
          if (name.stream === undefined && server === undefined) {
            await untilDeleted(hw, name.basin, context, signal)
          }
          context.printError(`Deleted ${name.stream === undefined ? 'basin' : 'stream'} ${nameText(name)}`)
        }
      })
    })

/** Asks on a terminal. A program in place of a user could not answer. */
async function isConfirmed(names: readonly string[], { input, printError }: CliContext): Promise<boolean> {
  const terminal = input()
  if (!terminal.isTTY) return true
  printError(`Delete ${names.join(', ')} with all records? Type yes:`)
  const lines = createInterface({ input: terminal })
  try {
    for await (const line of lines) return /^y(es)?$/i.test(line.trim())
    return false
  } finally {
    lines.close()
  }
}

const POLL_MS = 20

/**
 * Resolves when a basin whose deletion was requested is gone: closing the engine would interrupt the deletion
 * until the storage is opened again.
 */
export async function untilDeleted(
  hw: Headwater,
  basin: string,
  { clock }: Pick<CliContext, 'clock'>,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted()
    const { items } = await hw.listBasins({ prefix: basin, limit: 1 })
    if (items[0]?.name !== basin) return
    await new Promise<void>((resolve) => clock.schedule(POLL_MS, resolve))
  }
}
