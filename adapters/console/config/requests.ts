import type {
  BasinConfigInput,
  BasinReconfiguration,
  StorageClass,
  StreamConfigInput,
  StreamReconfiguration,
} from '../../../src/model/config.ts'
import { basinConfigOf, streamConfigOf } from '../../../src/wire/decode-resources.ts'
import { basinChangeText, streamChangeText } from '../../../src/wire/encode-resources.ts'
import { arrayOf, choiceOf, recordOf, textOfJson, unlessNull } from '../../../src/wire/response-json.ts'
import { creationOf } from '../../client/control-calls.ts'
import { jsonCall } from '../../client/json-call.ts'
import type { Sender } from '../../client/sender.ts'

/**
 * What servers have and the library leaves out: locations, storage classes, and a default retention of their
 * own, for which the library would send its own default.
 */

/** The names of the locations of basins. */
export function locationsOf(sender: Sender, signal: AbortSignal): Promise<string[]> {
  return sender.json(jsonCall('GET', '/locations', { signal }), (value) =>
    arrayOf(value, 'locations').map((location) => textOfJson(recordOf(location, 'location').name, 'name')),
  )
}

/** Creates a basin, in the default location if none is given. */
export async function createBasin(
  sender: Sender,
  basin: string,
  config: BasinReconfiguration,
  location: string | undefined,
): Promise<void> {
  await create(sender, '/basins', { basin, location, config: JSON.parse(basinChangeText(config)) })
}

/** Creates a stream. */
export async function createStream(
  sender: Sender,
  basin: string,
  stream: string,
  config: StreamReconfiguration,
): Promise<void> {
  await create(sender, '/streams', { stream, config: JSON.parse(streamChangeText(config)) }, basin)
}

async function create(sender: Sender, path: string, body: object, basin?: string): Promise<void> {
  const vendor = { 'request-token': creationOf(undefined).header }
  await sender.send(jsonCall('POST', path, { basin, text: JSON.stringify(body), vendor }))
}

/** The configuration of a basin, after a change if one is given. */
export function basinConfig(
  sender: Sender,
  basin: string,
  change?: BasinReconfiguration,
  signal?: AbortSignal,
): Promise<BasinConfigInput> {
  const call = configCall(`/basins/${basin}`, change && basinChangeText(change), { signal })
  return sender.json(call, (value) => {
    const config = basinConfigOf(value)
    const storageClass = storageClassOf(recordOf(value, 'basin').default_stream_config)
    return { ...config, defaultStreamConfig: { ...config.defaultStreamConfig, storageClass } }
  })
}

/** The configuration of a stream, after a change if one is given. */
export function streamConfig(
  sender: Sender,
  basin: string,
  stream: string,
  change?: StreamReconfiguration,
  signal?: AbortSignal,
): Promise<StreamConfigInput> {
  const path = `/streams/${encodeURIComponent(stream)}`
  const call = configCall(path, change && streamChangeText(change), { basin, signal })
  return sender.json(call, (value) => ({ ...streamConfigOf(value), storageClass: storageClassOf(value) }))
}

function configCall(path: string, text: string | undefined, options: Parameters<typeof jsonCall>[2]) {
  return text === undefined ? jsonCall('GET', path, options) : jsonCall('PATCH', path, { text, ...options })
}

function storageClassOf(config: unknown): StorageClass | undefined {
  const sent = unlessNull(config, (value) => recordOf(value, 'configuration').storage_class)
  return unlessNull(sent, (value) => choiceOf(value, 'storage_class', ['standard', 'express'] as const))
}
