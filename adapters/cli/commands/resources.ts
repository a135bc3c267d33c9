import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import { SYSTEM_STREAM_CONFIG } from '../../../src/core/config.ts'
import { type Headwater, HeadwaterError } from '../../../src/index.ts'
import type { BasinReconfiguration, StreamConfig, StreamReconfiguration } from '../../../src/model/config.ts'
import { basinConfigJson, streamConfigJson } from '../../../src/wire/json-config.ts'
import { BASIN_INFO, STREAM_INFO } from '../../../src/wire/json-resources.ts'
import { type CliContext, delay } from '../context.ts'
import { CliError, quoteName } from '../errors.ts'
import { answerFrom } from '../input.ts'
import { targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { withHeadwater } from '../target.ts'
import {
  durationMs,
  fail,
  nameText,
  type ResourceName,
  resourceName,
  resourceOf,
  retention,
  retentionText,
  streamOf,
} from '../values.ts'

const NAME = 'BASIN, or BASIN/STREAM'

const BOOLEANS = ['true', 'false', 'default'] as const
const CLASSES = ['standard', 'express', 'default'] as const
const MODES = ['client-prefer', 'client-require', 'arrival', 'default'] as const
const CIPHERS = ['aes-256-gcm', 'aegis-256', 'none', 'default'] as const

function configOptions<Args extends unknown[], Options extends OptionValues>(
  command: Command<Args, Options>,
) {
  const choice = <const Flags extends string, const Choices extends readonly string[]>(
    flags: Flags,
    description: string,
    choices: Choices,
  ) => new Option(flags, description).choices(choices)
  return command
    .option('--retention <DURATION>', 'How long records are kept: 12h, 30d, ... or forever', (text) =>
      text === 'default' ? text : retention(text),
    )
    .addOption(choice('--storage-class <CLASS>', 'How fast appends are acknowledged', CLASSES))
    .addOption(choice('--timestamping <MODE>', 'Where timestamps come from', MODES))
    .addOption(choice('--uncapped <BOOLEAN>', 'Whether timestamps may lie in the future', BOOLEANS))
    .option(
      '--delete-on-empty <DURATION>',
      'Delete if empty, this long after the last append: 1h, ... or off',
      deletionSetting,
    )
    .addOption(choice('--cipher <CIPHER>', 'Basins only: of new streams', CIPHERS))
    .addOption(
      choice('--create-on-append <BOOLEAN>', 'Basins only: whether appends create streams', BOOLEANS),
    )
    .addOption(choice('--create-on-read <BOOLEAN>', 'Basins only: whether reads create streams', BOOLEANS))
}

function deletionSetting(text: string): StreamConfig['deleteOnEmpty'] | 'default' {
  if (text === 'default') return text
  const ms = text === 'off' ? 0 : durationMs(text)
  if (ms !== undefined) return { minAgeSeconds: ms / 1000 }
  return fail('It must be a positive integer with s, m, h or d, such as 12h, or `off`')
}

/** Null returns a setting to its default. */
function setting<Value>(value: Value | 'default' | undefined): Value | null | undefined {
  return value === 'default' ? null : value
}

function flag(text: (typeof BOOLEANS)[number] | undefined): boolean | null | undefined {
  return text === 'default' ? null : text && text === 'true'
}

type ConfigOptions = ReturnType<ReturnType<typeof configOptions<[], Record<never, never>>>['opts']>

/**
 * Returns the change that the options make. Undefined if no option is given.
 *
 * @throws CliError with exit code 2.
 */
function givenConfig(
  options: ConfigOptions,
  { stream }: ResourceName,
): StreamReconfiguration | BasinReconfiguration | undefined {
  const { timestamping: mode, uncapped, cipher, createOnAppend, createOnRead } = options
  const ofStreams: StreamReconfiguration = {
    retentionPolicy: setting(options.retention),
    storageClass: setting(options.storageClass),
    ...((mode ?? uncapped) && { timestamping: { mode: setting(mode), uncapped: flag(uncapped) } }),
    deleteOnEmpty: setting(options.deleteOnEmpty),
  }
  const ofBasins: BasinReconfiguration = {
    streamCipher: setting(cipher === 'none' ? 'default' : cipher),
    createStreamOnAppend: flag(createOnAppend),
    createStreamOnRead: flag(createOnRead),
  }
  if (stream === undefined) {
    if (isEmpty(ofStreams)) return isEmpty(ofBasins) ? undefined : ofBasins
    return { ...ofBasins, defaultStreamConfig: ofStreams }
  }
  if (isEmpty(ofBasins)) return isEmpty(ofStreams) ? undefined : ofStreams
  throw new CliError(
    2,
    '`--cipher`, `--create-on-append` and `--create-on-read` are settings of basins, not of streams',
  )
}

function isEmpty(change: object): boolean {
  return Object.values(change).every((value) => value === undefined)
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
    .option('--json', 'Print the new basin or stream as JSON')
    .action((name, options) => {
      const config = givenConfig(options, name) ?? {}
      const create = async (hw: Headwater) => {
        try {
          const info = await createResource(hw, name, config)
          if (options.json) context.print(info)
          else context.printError(await creationText(hw, name))
        } catch (error) {
          if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
          const what = name.stream === undefined ? 'basin' : 'stream'
          throw new CliError(1, `${what} ${quoteName(nameText(name))} already exists`)
        }
      }
      return withHeadwater(options, context, create, { mustExist: false })
    })

/** Says what was created, and how long it keeps records if the caller may ask and the server tells. */
export async function creationText(hw: Headwater, name: ResourceName): Promise<string> {
  const [what, keeper] = name.stream === undefined ? ['basin', 'its streams keep'] : ['stream', 'it keeps']
  const created = `Created ${what} ${nameText(name)}`
  try {
    const { retentionPolicy = SYSTEM_STREAM_CONFIG.retentionPolicy } =
      name.stream === undefined
        ? (await hw.basin(name.basin).config()).defaultStreamConfig
        : await streamOf(hw, name).config()
    return `${created}; ${keeper} records ${retentionText(retentionPolicy)}`
  } catch (error) {
    if (HeadwaterError.is(error)) return created
    throw error
  }
}

/** Creates a basin or a stream. Resolves to its info as JSON. Settings that are null are not set. */
async function createResource(hw: Headwater, { basin, stream }: ResourceName, config: object) {
  if (stream === undefined) return BASIN_INFO.text((await hw.createBasin(basin, config)).info)
  return STREAM_INFO.text((await hw.basin(basin).createStream(stream, config)).info)
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
        const config = await configured(hw, name, change)
        if (options.json) context.print(config)
        else printTable(settingsOf(JSON.parse(config)), context)
      })
    })

/** Makes the change. Resolves to the whole configuration as JSON. */
async function configured(hw: Headwater, name: ResourceName, change: object = {}) {
  if (name.stream === undefined) {
    const basin = hw.basin(name.basin)
    return basinConfigJson(await (isEmpty(change) ? basin.config() : basin.reconfigure(change)))
  }
  const stream = streamOf(hw, name)
  return streamConfigJson(await (isEmpty(change) ? stream.config() : stream.reconfigure(change)))
}

/** Flattens an object to rows of paths and values. */
function settingsOf(value: unknown, path = ''): (readonly string[])[] {
  if (typeof value !== 'object') return [[path, String(value)]]
  if (value === null) return [[path, '-']]
  const members = Object.entries(value)
  if (members.length === 0) return [[path, 'yes']]
  return members.flatMap(([name, member]) => settingsOf(member, path === '' ? name : `${path}.${name}`))
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
      await withHeadwater(options, context, async (hw, server) => {
        for (const name of names) {
          await resourceOf(hw, name).delete()
          if (name.stream === undefined && server === undefined) {
            await untilDeleted(hw, name.basin, context.clock, context.stopSignal())
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
  return /^y(es)?$/i.test(await answerFrom(terminal))
}

const POLL_MS = 20

/**
 * Resolves when a basin whose deletion was requested is gone: closing the engine would interrupt the deletion
 * until the storage is opened again.
 */
export async function untilDeleted(
  hw: Headwater,
  basin: string,
  clock: CliContext['clock'],
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    signal?.throwIfAborted()
    const { items } = await hw.listBasins({ prefix: basin, limit: 1 })
    if (items[0]?.name !== basin) return
    await delay(POLL_MS, clock, signal)
  }
}
