import type { CreateOptions } from '../../src/api/basin.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type StreamConfig,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { BasinInfo, ListQuery, Page, Provisioned, StreamInfo } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../src/model/names.ts'
import {
  basinConfigOf,
  basinInfoOf,
  decodePage,
  streamConfigOf,
  streamInfoOf,
} from '../../src/wire/decode-resources.ts'
import {
  basinChangeText,
  createBasinText,
  createStreamText,
  ensureBasinText,
  streamChangeText,
  streamConfigText,
} from '../../src/wire/encode-resources.ts'
import type { Call, CallSender } from './call.ts'
import { creationOf, listSearch, provisionedOf } from './control-calls.ts'
import { isMissing } from './errors.ts'
import { jsonCall } from './json-call.ts'

/** The control plane, which plain appends and reads of existing streams do not load. */

export { streamConfigText }

type Signal = AbortSignal | undefined

/** Creates a basin with a valid name. Rejects with `resource_already_exists`. */
export async function createBasin(
  sender: CallSender,
  name: string,
  config: BasinConfigInput = {},
  { requestToken, signal }: CreateOptions = {},
): Promise<Provisioned<BasinInfo>> {
  const creation = creationOf(requestToken)
  assertBasinConfig(config)
  if (name.length < BASIN_NAME_BYTES_MIN_ON_POST) return createShortName(sender, name, config, signal)
  const call = jsonCall('POST', '/basins', {
    text: createBasinText(name, withBasinRetention(sender, config)),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply, creation))
}

/** Makes a basin with a valid name exist with exactly this configuration. */
export function ensureBasin(
  sender: CallSender,
  name: string,
  config: BasinConfigInput,
  signal: Signal,
): Promise<Provisioned<BasinInfo>> {
  assertBasinConfig(config)
  const text = ensureBasinText(withBasinRetention(sender, config))
  const call = jsonCall('PUT', `/basins/${name}`, { text, signal })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply))
}

export function listBasins(sender: CallSender, query: ListQuery, signal: Signal): Promise<Page<BasinInfo>> {
  const call = jsonCall('GET', `/basins${listSearch(query, basinPrefixProblem)}`, { signal })
  return sender.json(call, (value) => decodePage(value, 'basins', basinInfoOf))
}

export function basinConfig(sender: CallSender, basin: string, signal: Signal): Promise<BasinConfig> {
  return sender.json(jsonCall('GET', `/basins/${basin}`, { signal }), basinConfigOf)
}

export async function reconfigureBasin(
  sender: CallSender,
  basin: string,
  change: BasinReconfiguration,
  signal: Signal,
): Promise<BasinConfig> {
  assertBasinConfig(change)
  const complete = await keepingRetention(sender, basin, change, signal)
  const call = jsonCall('PATCH', `/basins/${basin}`, { text: basinChangeText(complete), signal })
  return sender.json(call, basinConfigOf)
}

/** Creates a stream with a valid name. Rejects with `resource_already_exists`. */
export async function createStream(
  sender: CallSender,
  basin: string,
  name: string,
  config: StreamConfigInput,
  { requestToken, signal }: CreateOptions,
): Promise<Provisioned<StreamInfo>> {
  const creation = creationOf(requestToken)
  assertStreamConfig(config)
  const call = jsonCall('POST', '/streams', {
    basin,
    text: createStreamText(name, await withStreamRetention(sender, basin, config, signal)),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply, creation))
}

/** Makes a stream with a valid name exist with exactly this configuration. */
export async function ensureStream(
  sender: CallSender,
  basin: string,
  name: string,
  config: StreamConfigInput,
  signal: Signal,
): Promise<Provisioned<StreamInfo>> {
  assertStreamConfig(config)
  const call = jsonCall('PUT', `/streams/${encodeURIComponent(name)}`, {
    basin,
    text: streamConfigText(await withStreamRetention(sender, basin, config, signal)),
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(streamInfoOf(value), reply))
}

/** @param assertName Throws if no basin can have the name. */
export function listStreams(
  sender: CallSender,
  basin: string,
  query: ListQuery,
  signal: Signal,
  assertName: () => void,
): Promise<Page<StreamInfo>> {
  const search = listSearch(query, streamPrefixProblem)
  assertName()
  const call = jsonCall('GET', `/streams${search}`, { basin, signal })
  return sender.json(call, (value) => decodePage(value, 'streams', streamInfoOf))
}

/** @param call A GET of the stream. */
export function streamConfig(sender: CallSender, call: Call): Promise<StreamConfig> {
  return sender.json(call, streamConfigOf)
}

export async function reconfigureStream(
  sender: CallSender,
  path: string,
  basin: string,
  change: StreamReconfiguration,
  signal: Signal,
): Promise<StreamConfig> {
  assertStreamConfig(change)
  const isCleared = change.retentionPolicy === null
  const complete = isCleared ? await withStreamRetention(sender, basin, change, signal) : change
  const call = jsonCall('PATCH', path, { basin, text: streamChangeText(complete), signal })
  return sender.json(call, streamConfigOf)
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
    if (!isMissing(error)) throw error
    return ensureBasin(sender, name, config, signal)
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
    const { defaultStreamConfig } = await basinConfig(sender, basin, signal)
    return defaultStreamConfig.retentionPolicy !== undefined
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'permission_denied') return undefined
    throw error
  }
}
