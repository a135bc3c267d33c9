import {
  CREATE_OPTIONS,
  CREATE_STREAM_OPTIONS,
  type CreateOptions,
  type CreateStreamOptions,
} from '../../src/api/basin.ts'
import type { CallOptions } from '../../src/api/call-options.ts'
import { existsBy } from '../../src/api/lists.ts'
import { utf8 } from '../../src/model/bytes.ts'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinConfig,
  type BasinConfigInput,
  type BasinReconfiguration,
  type StreamConfigInput,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { assertValid, HeadwaterError, invalid, isStreamMissing } from '../../src/model/errors.ts'
import {
  type BasinInfo,
  type Provisioned,
  type ProvisionResult,
  STREAM_CREATION,
  type StreamCreation,
  type StreamInfo,
} from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { requestTokenProblem } from '../../src/model/names.ts'
import { idFrom, secureRandom } from '../../src/runtime/random.ts'
import { vendorHeader } from '../../src/wire/headers.ts'
import { oneOf } from '../../src/wire/json.ts'
import { basinConfigOf, STREAM_CONFIG_INPUT } from '../../src/wire/json-config.ts'
import {
  BASIN_INFO,
  CREATE_BASIN,
  CREATE_STREAM,
  ENSURE_BASIN,
  STREAM_INFO,
} from '../../src/wire/json-resources.ts'
import { begin, jsonCall, type Reply } from './call.ts'
import type { Sender } from './sender.ts'
import type { RemoteTarget } from './stream-target.ts'

/** How often an append creates its stream, should others keep deleting it. */
const CREATIONS_MAX = 3

/** Creates a basin. Rejects with `resource_already_exists`. */
export async function createBasin(
  sender: Sender,
  name: string,
  config: BasinConfigInput = {},
  options: CreateOptions = {},
): Promise<Provisioned<BasinInfo>> {
  const signal = begin(sender, options, [name], CREATE_OPTIONS)
  const header = requestTokenHeader(options.requestToken)
  const isOwn = options.requestToken === undefined
  assertBasinConfig(config)
  if (name.length < BASIN_NAME_BYTES_MIN_ON_POST) {
    // POST takes only longer names, PUT all of them.
    if (await existsBy(basinConfig(sender, name, { signal }))) {
      throw new HeadwaterError('resource_already_exists', `basin \`${name}\` already exists`)
    }
    return ensureBasin(sender, name, config, { signal })
  }
  const call = jsonCall('POST', '/basins', {
    text: CREATE_BASIN.requestText({ basin: name, config: withBasinRetention(sender, config) }),
    vendor: { 'request-token': header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(BASIN_INFO.of(value), reply, isOwn))
}

/** Makes a basin exist with exactly this configuration. */
export async function ensureBasin(
  sender: Sender,
  name: string,
  config: BasinConfigInput = {},
  options?: CallOptions,
): Promise<Provisioned<BasinInfo>> {
  const signal = begin(sender, options, [name])
  assertBasinConfig(config)
  const text = ENSURE_BASIN.requestText({ config: withBasinRetention(sender, config) })
  const call = jsonCall('PUT', `/basins/${name}`, { text, signal })
  return sender.json(call, (value, reply) => provisionedOf(BASIN_INFO.of(value), reply))
}

/** Creates a stream. Rejects with `resource_already_exists`. */
export async function createStream(
  sender: Sender,
  [basin, name]: readonly [basin: string, stream: string],
  config: StreamConfigInput = {},
  options: CreateStreamOptions = {},
): Promise<Provisioned<StreamInfo>> {
  const signal = begin(sender, options, [basin, name], CREATE_STREAM_OPTIONS)
  for (const member of Object.keys(STREAM_CREATION) as (keyof StreamCreation)[]) {
    if (options[member] === undefined) continue
    const message = `\`${member}\` is not part of the wire protocol: create the stream in the server's process`
    throw new HeadwaterError('unsupported', message, { field: member })
  }
  const header = requestTokenHeader(options.requestToken)
  const isOwn = options.requestToken === undefined
  assertStreamConfig(config)
  const call = jsonCall('POST', '/streams', {
    basin,
    text: CREATE_STREAM.requestText({
      stream: name,
      config: await withStreamRetention(sender, basin, config, signal),
    }),
    vendor: { 'request-token': header },
    signal,
  })
  return sender.json(call, (value, reply) => provisionedOf(STREAM_INFO.of(value), reply, isOwn))
}

/** Makes a stream exist with exactly this configuration. */
export async function ensureStream(
  sender: Sender,
  [basin, name]: readonly [basin: string, stream: string],
  config: StreamConfigInput = {},
  options?: CallOptions,
): Promise<Provisioned<StreamInfo>> {
  const signal = begin(sender, options, [basin, name])
  assertStreamConfig(config)
  const text = STREAM_CONFIG_INPUT.text(await withStreamRetention(sender, basin, config, signal))
  const call = jsonCall('PUT', `/streams/${encodeURIComponent(name)}`, { basin, text, signal })
  return sender.json(call, (value, reply) => provisionedOf(STREAM_INFO.of(value), reply))
}

/**
 * Makes a call, which has no effect on a missing stream, and again once the stream and its basin were
 * created. Rejects with the error of the call if that is not permitted.
 */
export async function createIfMissing<Result>(
  sender: Sender,
  { names, config }: RemoteTarget,
  mayCreate: boolean,
  call: () => Promise<Result>,
): Promise<Result> {
  for (let creations = 0; ; creations++) {
    try {
      return await call()
    } catch (missing) {
      const isMissing = isStreamMissing(missing) && !missing.mayHaveEffects
      if (!isMissing || !mayCreate || creations === CREATIONS_MAX) throw missing
      try {
        if (missing.code === 'basin_not_found') await unlessExists(createBasin(sender, names[0]))
        await unlessExists(createStream(sender, names, config))
      } catch (error) {
        throw isOf(error, 'permission_denied') ? missing : error
      }
    }
  }
}

async function unlessExists(creating: Promise<unknown>): Promise<void> {
  try {
    await creating
  } catch (error) {
    if (!isOf(error, 'resource_already_exists')) throw error
  }
}

function isOf(error: unknown, code: HeadwaterError['code']): boolean {
  return HeadwaterError.is(error) && error.code === code
}

/**
 * The header that identifies a creation, so that a repetition has no further effect: the given request token,
 * or a random one. Its characters stand for the bytes of UTF-8. Throws `invalid`.
 */
function requestTokenHeader(requestToken = idFrom(secureRandom)): string {
  assertValid(requestTokenProblem(requestToken), 'requestToken')
  if (/[\0\r\n]/.test(requestToken) || requestToken.trim() !== requestToken) {
    throw invalid('`requestToken` must have no line breaks and no spaces at its ends', 'requestToken')
  }
  return String.fromCharCode(...utf8(requestToken))
}

/**
 * The result of a creation. A repetition without a token of the caller finds what its first attempt created.
 *
 * @param isOwn Whether only this call has the request token.
 */
function provisionedOf<Info>(info: Info, reply: Reply, isOwn = false): Provisioned<Info> {
  const sent = vendorHeader(reply, 'provision-result')
  // Pages of other origins do not see the header of every server.
  const isCreated = isOwn || sent === undefined
  return { result: isCreated ? 'created' : resultOf(sent, 'provision-result'), info }
}

const resultOf = oneOf<ProvisionResult>(['created', 'updated', 'noop'])

// In the library, records never expire without a retention; servers have another default. So a client sends
// `infinite` with what is given none, unless its option `defaultRetention` leaves it to the server.

/** Gives a basin without a retention the one of the library. */
function withBasinRetention({ settings }: Sender, config: BasinConfigInput): BasinConfigInput {
  if (!settings.keepsForever) return config
  const { defaultStreamConfig } = config
  const retentionPolicy = defaultStreamConfig?.retentionPolicy ?? 'infinite'
  return { ...config, defaultStreamConfig: { ...defaultStreamConfig, retentionPolicy } }
}

/** Gives a stream without a retention the one of the library, unless its basin has one. */
export async function withStreamRetention<Config extends StreamReconfiguration>(
  sender: Sender,
  basin: string,
  config: Config,
  signal: AbortSignal | undefined,
): Promise<Config> {
  if (config.retentionPolicy != null || (await hasRetention(sender, basin, signal)) !== false) return config
  return { ...config, retentionPolicy: 'infinite' }
}

/** Makes a change that clears the retention of a basin set that of the library. */
export function withKeptRetention({ settings }: Sender, change: BasinReconfiguration): BasinReconfiguration {
  const { defaultStreamConfig } = change
  const isCleared = defaultStreamConfig === null || defaultStreamConfig?.retentionPolicy === null
  if (!isCleared || !settings.keepsForever) return change
  const rest = defaultStreamConfig ?? { storageClass: null, timestamping: null, deleteOnEmpty: null }
  return { ...change, defaultStreamConfig: { ...rest, retentionPolicy: 'infinite' } }
}

/**
 * Whether the basin has a retention; undefined if the server decides, or the token does not permit looking.
 */
async function hasRetention(
  sender: Sender,
  basin: string,
  signal: AbortSignal | undefined,
): Promise<boolean | undefined> {
  if (!sender.settings.keepsForever) return undefined
  try {
    const { defaultStreamConfig } = await basinConfig(sender, basin, { signal })
    return defaultStreamConfig.retentionPolicy !== undefined
  } catch (error) {
    if (isOf(error, 'permission_denied')) return undefined
    throw error
  }
}

/** Resolves to the configuration of a basin. */
export async function basinConfig(
  sender: Sender,
  basin: string,
  options?: CallOptions,
): Promise<BasinConfig> {
  const signal = begin(sender, options, [basin])
  return sender.json(jsonCall('GET', `/basins/${basin}`, { signal }), basinConfigOf)
}
