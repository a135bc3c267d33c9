import {
  CREATE_OPTIONS,
  CREATE_STREAM_OPTIONS,
  type CreateOptions,
  type CreateStreamOptions,
} from '../../src/api/basin.ts'
import type { CallOptions } from '../../src/api/call-options.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfigInput,
  type StreamConfigInput,
} from '../../src/model/config.ts'
import { STREAM_CREATION, type StreamCreation } from '../../src/model/creation.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import type { BasinInfo, Provisioned, StreamInfo } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'
import {
  BASIN_INFO,
  CREATE_BASIN,
  CREATE_STREAM,
  ENSURE_BASIN,
  STREAM_INFO,
} from '../../src/wire/json-resources.ts'
import { type CallSender, jsonCall } from './call.ts'
import { beginBasin, beginStream, creationOf, provisionedOf } from './control-calls.ts'
import { withBasinRetention, withStreamRetention } from './default-retention.ts'

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
  if (name.length < BASIN_NAME_BYTES_MIN_ON_POST) return createShortName(sender, name, config, { signal })
  const call = jsonCall('POST', '/basins', {
    text: CREATE_BASIN.requestText({ basin: name, config: withBasinRetention(sender, config) }),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(BASIN_INFO.of(value), reply, creation))
}

/** POST takes only names of 8 characters and more, PUT all of them. */
async function createShortName(
  sender: CallSender,
  name: string,
  config: BasinConfigInput,
  options: CallOptions,
): Promise<Provisioned<BasinInfo>> {
  try {
    await sender.send(jsonCall('GET', `/basins/${name}`, options))
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    return ensureBasin(sender, name, config, options)
  }
  throw new HeadwaterError('resource_already_exists', `basin \`${name}\` already exists`)
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
  const text = ENSURE_BASIN.requestText({ config: withBasinRetention(sender, config) })
  const call = jsonCall('PUT', `/basins/${name}`, { text, signal })
  return sender.json(call, (value, reply) => provisionedOf(BASIN_INFO.of(value), reply))
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
    text: CREATE_STREAM.requestText({
      stream: name,
      config: await withStreamRetention(sender, basin, config, signal),
    }),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(STREAM_INFO.of(value), reply, creation))
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
  const call = jsonCall('PUT', `/streams/${encodeURIComponent(name)}`, {
    basin,
    text: STREAM_CONFIG_INPUT.text(await withStreamRetention(sender, basin, config, signal)),
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(STREAM_INFO.of(value), reply))
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
