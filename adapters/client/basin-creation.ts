import { assertBasinConfig, type BasinConfigInput } from '../../src/model/config.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { BasinInfo, Provisioned } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { basinInfoOf } from '../../src/wire/decode-resources.ts'
import { createBasinText, ensureBasinText } from '../../src/wire/encode-resources.ts'
import { creationOf, jsonCall, provisionedOf } from './calls.ts'
import { isMissing } from './errors.ts'
import type { Sender } from './sender.ts'

interface CreateBasinOptions {
  readonly requestToken?: string | undefined
  readonly signal?: AbortSignal | undefined
}

/** Creates a basin with a valid name. Rejects with `resource_already_exists`, and `invalid` for the config. */
export async function createBasin(
  sender: Sender,
  name: string,
  config: BasinConfigInput,
  { requestToken, signal }: CreateBasinOptions = {},
): Promise<Provisioned<BasinInfo>> {
  const creation = creationOf(requestToken)
  assertBasinConfig(config)
  if (name.length < BASIN_NAME_BYTES_MIN_ON_POST) return createShortName(sender, name, config, signal)
  const call = jsonCall('POST', '/basins', {
    text: createBasinText(name, withRetention(config)),
    vendor: { 'request-token': creation.header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply, creation))
}

/** Makes a basin with a valid name exist with exactly this configuration. */
export function ensureBasin(
  sender: Sender,
  name: string,
  config: BasinConfigInput,
  signal: AbortSignal | undefined,
): Promise<Provisioned<BasinInfo>> {
  const call = jsonCall('PUT', `/basins/${name}`, { text: ensureBasinText(withRetention(config)), signal })
  return sender.json(call, (value, reply) => provisionedOf(basinInfoOf(value), reply))
}

/** POST takes only names of 8 characters and more, PUT all of them. */
async function createShortName(
  sender: Sender,
  name: string,
  config: BasinConfigInput,
  signal: AbortSignal | undefined,
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
function withRetention(config: BasinConfigInput): BasinConfigInput {
  const { defaultStreamConfig } = config
  const retentionPolicy = defaultStreamConfig?.retentionPolicy ?? 'infinite'
  return { ...config, defaultStreamConfig: { ...defaultStreamConfig, retentionPolicy } }
}
