import {
  CREATE_OPTIONS,
  CREATE_STREAM_OPTIONS,
  type CreateOptions,
  type CreateStreamOptions,
} from '../../src/api/basin.ts'
import type { CallOptions } from '../../src/api/call-options.ts'
import { assertBasinConfig } from '../../src/model/basin-config.ts'
import {
  assertStreamConfig,
  type BasinConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../src/model/control-names.ts'
import { assertValid, HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned, StreamInfo } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { STREAM_CREATION, type StreamCreation } from '../../src/model/stream-creation.ts'
import { assertText } from '../../src/model/validation.ts'
import {
  basinChangeText,
  basinConfigOf,
  streamChangeText,
  streamConfigOf,
} from '../../src/wire/json-config.ts'
import {
  basinInfoOf,
  createBasinText,
  createStreamText,
  ensureBasinText,
  pageOf,
  streamConfigText,
  streamInfoOf,
} from '../../src/wire/json-resources.ts'
import { type CallSender, jsonCall } from './call.ts'
import { begin, creationOf, listSearch, provisionedOf } from './control-calls.ts'

/** The control plane, which plain appends and reads of existing streams do not load. */

export { streamConfigText }

type Signal = AbortSignal | undefined

/** Creates a basin. Rejects with `resource_already_exists`. */
export async function createBasin(
  sender: CallSender,
  name: string,
  config: BasinConfigInput = {},
  options: CreateOptions = {},
): Promise<Provisioned<BasinInfo>> {
  const signal = beginBasin(sender, name, options, CREATE_OPTIONS)
  const creation = creationOf(options.requestToken)
  assertBasinConfig(config)
  if (name.length < BASIN_NAME_BYTES_MIN_ON_POST) return createShortName(sender, name, config, signal)
  const call = jsonCall('POST', '/basins', {
    text: createBasinText(name, withBasinRetention(sender, config)),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply, creation))
}

/** Makes a basin exist with exactly this configuration. */
export async function ensureBasin(
  sender: CallSender,
  name: string,
  config: BasinConfigInput = {},
  options?: CallOptions,
): Promise<Provisioned<BasinInfo>> {
  const signal = beginBasin(sender, name, options)
  assertBasinConfig(config)
  const text = ensureBasinText(withBasinRetention(sender, config))
  const call = jsonCall('PUT', `/basins/${name}`, { text, signal })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply))
}

export async function listBasins(
  sender: CallSender,
  query: ListQuery = {},
  options?: CallOptions,
): Promise<Page<BasinInfo>> {
  const signal = begin(sender, options)
  const call = jsonCall('GET', `/basins${listSearch(query, basinPrefixProblem)}`, { signal })
  return sender.json(call, (value) => pageOf(value, 'basins', basinInfoOf))
}

export async function getBasinConfig(
  sender: CallSender,
  basin: string,
  options?: CallOptions,
): Promise<BasinConfig> {
  const signal = beginBasin(sender, basin, options)
  return sender.json(jsonCall('GET', `/basins/${basin}`, { signal }), basinConfigOf)
}

export async function reconfigureBasin(
  sender: CallSender,
  basin: string,
  change: BasinReconfiguration,
  options?: CallOptions,
): Promise<BasinConfig> {
  const signal = beginBasin(sender, basin, options)
  assertBasinConfig(change)
  const complete = await keepingRetention(sender, basin, change, signal)
  const call = jsonCall('PATCH', `/basins/${basin}`, { text: basinChangeText(complete), signal })
  return sender.json(call, basinConfigOf)
}

/** Is not repeated after an unknown outcome: another basin may have the name by then. */
export async function deleteBasin(sender: CallSender, basin: string, options?: CallOptions): Promise<void> {
  const signal = beginBasin(sender, basin, options)
  await sender.send(jsonCall('DELETE', `/basins/${basin}`, { isRepeatable: false, signal }))
}

/** Creates a stream. Rejects with `resource_already_exists`. */
export async function createStream(
  sender: CallSender,
  basin: string,
  name: string,
  config: StreamConfigInput = {},
  options: CreateStreamOptions = {},
): Promise<Provisioned<StreamInfo>> {
  const signal = beginStream(sender, basin, name, options, CREATE_STREAM_OPTIONS)
  for (const member of Object.keys(STREAM_CREATION) as (keyof StreamCreation)[]) {
    if (options[member] === undefined) continue
    const message = `\`${member}\` is not part of the wire protocol: create the stream in the server's process`
    throw new HeadwaterError('unsupported', message, { field: member })
  }
  const creation = creationOf(options.requestToken)
  assertStreamConfig(config)
  const call = jsonCall('POST', '/streams', {
    basin,
    text: createStreamText(name, await withStreamRetention(sender, basin, config, signal)),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply, creation))
}

/** Makes a stream exist with exactly this configuration. */
export async function ensureStream(
  sender: CallSender,
  basin: string,
  name: string,
  config: StreamConfigInput = {},
  options?: CallOptions,
): Promise<Provisioned<StreamInfo>> {
  const signal = beginStream(sender, basin, name, options)
  assertStreamConfig(config)
  const call = jsonCall('PUT', pathOf(name), {
    basin,
    text: streamConfigText(await withStreamRetention(sender, basin, config, signal)),
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply))
}

export async function listStreams(
  sender: CallSender,
  basin: string,
  query: ListQuery = {},
  options?: CallOptions,
): Promise<Page<StreamInfo>> {
  const signal = begin(sender, options)
  const search = listSearch(query, streamPrefixProblem)
  assertValid(basinNameProblem(basin), 'basin')
  const call = jsonCall('GET', `/streams${search}`, { basin, signal })
  return sender.json(call, (value) => pageOf(value, 'streams', streamInfoOf))
}

export async function getStreamConfig(
  sender: CallSender,
  basin: string,
  name: string,
  options?: CallOptions,
): Promise<StreamConfig> {
  const signal = beginStream(sender, basin, name, options)
  return sender.json(jsonCall('GET', pathOf(name), { basin, signal }), streamConfigOf)
}

export async function reconfigureStream(
  sender: CallSender,
  basin: string,
  name: string,
  change: StreamReconfiguration,
  options?: CallOptions,
): Promise<StreamConfig> {
  const signal = beginStream(sender, basin, name, options)
  assertStreamConfig(change)
  const isCleared = change.retentionPolicy === null
  const complete = isCleared ? await withStreamRetention(sender, basin, change, signal) : change
  const call = jsonCall('PATCH', pathOf(name), { basin, text: streamChangeText(complete), signal })
  return sender.json(call, streamConfigOf)
}

/** Is not repeated after an unknown outcome: another stream may have the name by then. */
export async function deleteStream(
  sender: CallSender,
  basin: string,
  name: string,
  options?: CallOptions,
): Promise<void> {
  const signal = beginStream(sender, basin, name, options)
  await sender.send(jsonCall('DELETE', pathOf(name), { basin, isRepeatable: false, signal }))
}

/**
 * Creates a stream that an append or a read found missing, and its basin, unless they exist. Rejects with
 * `missing` if that is not permitted.
 */
export async function createMissingStream(
  sender: CallSender,
  { basin, name, config }: { basin: string; name: string; config?: StreamConfigInput | undefined },
  missing: HeadwaterError,
): Promise<void> {
  try {
    if (missing.code === 'basin_not_found') await unlessExists(createBasin(sender, basin))
    await unlessExists(createStream(sender, basin, name, config))
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'permission_denied') throw missing
    throw error
  }
}

async function unlessExists(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'resource_already_exists') throw error
  }
}

function beginBasin(
  sender: CallSender,
  name: string,
  options: CallOptions | undefined,
  members?: typeof CREATE_OPTIONS,
): Signal {
  assertText(name, 'basin')
  const signal = begin(sender, options, members)
  assertValid(basinNameProblem(name), 'basin')
  return signal
}

function beginStream(
  sender: CallSender,
  basin: string,
  name: string,
  options: CallOptions | undefined,
  members?: typeof CREATE_OPTIONS,
): Signal {
  assertText(name, 'stream')
  const signal = begin(sender, options, members)
  assertValid(streamNameProblem(name), 'stream')
  assertValid(basinNameProblem(basin), 'basin')
  return signal
}

function pathOf(stream: string): string {
  return `/streams/${encodeURIComponent(stream)}`
}

/** POST takes only names of 8 characters and more, PUT all of them. */
async function createShortName(
  sender: CallSender,
  name: string,
  config: BasinConfigInput,
  signal: Signal,
): Promise<Provisioned<BasinInfo>> {
  try {
    await sender.send(jsonCall('GET', `/basins/${name}`, { signal }))
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    return ensureBasin(sender, name, config, { signal })
  }
  throw new HeadwaterError('resource_already_exists', `basin \`${name}\` already exists`)
}

/** Sends the retention of the library, infinite, with a basin that is given none: servers have another. */
function withBasinRetention({ settings }: CallSender, config: BasinConfigInput): BasinConfigInput {
  if (!settings.keepsForever) return config
  const { defaultStreamConfig } = config
  const retentionPolicy = defaultStreamConfig?.retentionPolicy ?? 'infinite'
  return { ...config, defaultStreamConfig: { ...defaultStreamConfig, retentionPolicy } }
}

/** Gives a stream without a retention the one of the library, unless its basin has one. */
async function withStreamRetention<Config extends StreamReconfiguration>(
  sender: CallSender,
  basin: string,
  config: Config,
  signal: Signal,
): Promise<Config> {
  if (config.retentionPolicy != null || (await hasRetention(sender, basin, signal)) !== false) return config
  return { ...config, retentionPolicy: 'infinite' }
}

/** A change that clears the retention of a basin makes it infinite. */
async function keepingRetention(
  sender: CallSender,
  basin: string,
  change: BasinReconfiguration,
  signal: Signal,
): Promise<BasinReconfiguration> {
  const { defaultStreamConfig } = change
  const isCleared = defaultStreamConfig === null || defaultStreamConfig?.retentionPolicy === null
  if (!isCleared || (await hasRetention(sender, basin, signal)) !== true) return change
  const rest = defaultStreamConfig ?? { storageClass: null, timestamping: null, deleteOnEmpty: null }
  return { ...change, defaultStreamConfig: { ...rest, retentionPolicy: 'infinite' } }
}

/**
 * Whether the basin has a retention. In the library, records never expire without one; on the wire they do,
 * so it is sent. A token that does not permit looking leaves it to the server: undefined.
 */
async function hasRetention(sender: CallSender, basin: string, signal: Signal): Promise<boolean | undefined> {
  if (!sender.settings.keepsForever) return undefined
  try {
    const { defaultStreamConfig } = await getBasinConfig(sender, basin, { signal })
    return defaultStreamConfig.retentionPolicy !== undefined
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'permission_denied') return undefined
    throw error
  }
}
