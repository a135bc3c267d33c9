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
  assertBasinConfig(config)
  const creation = creationOf(requestToken)
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

export function reconfigureBasin(
  sender: CallSender,
  basin: string,
  change: BasinReconfiguration,
  signal: Signal,
): Promise<BasinConfig> {
  assertBasinConfig(change)
  const call = jsonCall('PATCH', `/basins/${basin}`, { text: basinChangeText(change), signal })
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

export function reconfigureStream(
  sender: CallSender,
  path: string,
  basin: string,
  change: StreamReconfiguration,
  signal: Signal,
): Promise<StreamConfig> {
  assertStreamConfig(change)
  const call = jsonCall('PATCH', path, { basin, text: streamChangeText(change), signal })
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

/** In the library, records of new basins never expire unless a retention is given; on the wire they do. */
function withBasinRetention({ settings }: CallSender, config: BasinConfigInput): BasinConfigInput {
  if (!settings.keepsForever) return config
  const { defaultStreamConfig } = config
  const retentionPolicy = defaultStreamConfig?.retentionPolicy ?? 'infinite'
  return { ...config, defaultStreamConfig: { ...defaultStreamConfig, retentionPolicy } }
}

/**
 * In the library, records never expire unless the stream or its basin has a retention; on the wire they do,
 * so it is sent where the basin has none. A token that does not permit looking leaves it to the server.
 */
async function withStreamRetention(
  sender: CallSender,
  basin: string,
  config: StreamConfigInput,
  signal: Signal,
): Promise<StreamConfigInput> {
  if (config.retentionPolicy != null || !sender.settings.keepsForever) return config
  try {
    const { defaultStreamConfig } = await basinConfig(sender, basin, signal)
    const isSet = defaultStreamConfig.retentionPolicy !== undefined
    return isSet ? config : { ...config, retentionPolicy: 'infinite' }
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'permission_denied') return config
    throw error
  }
}
