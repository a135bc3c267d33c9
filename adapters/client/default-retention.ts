import type { CallOptions } from '../../src/api/call-options.ts'
import type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  StreamReconfiguration,
} from '../../src/model/config.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { basinConfigOf } from '../../src/wire/json-config.ts'
import { type CallSender, jsonCall } from './call.ts'
import { beginBasin } from './control-calls.ts'

/**
 * In the library, records never expire without a retention; servers have another default. So a client sends
 * `infinite` with what is given none, unless its option `defaultRetention` leaves it to the server.
 */

type Signal = AbortSignal | undefined

/** Gives a basin without a retention the one of the library. */
export function withBasinRetention({ settings }: CallSender, config: BasinConfigInput): BasinConfigInput {
  if (!settings.keepsForever) return config
  const { defaultStreamConfig } = config
  const retentionPolicy = defaultStreamConfig?.retentionPolicy ?? 'infinite'
  return { ...config, defaultStreamConfig: { ...defaultStreamConfig, retentionPolicy } }
}

/** Gives a stream without a retention the one of the library, unless its basin has one. */
export async function withStreamRetention<Config extends StreamReconfiguration>(
  sender: CallSender,
  basin: string,
  config: Config,
  signal: Signal,
): Promise<Config> {
  if (config.retentionPolicy != null || (await hasRetention(sender, basin, signal)) !== false) return config
  return { ...config, retentionPolicy: 'infinite' }
}

/** A change that clears the retention of a basin makes it infinite. */
export async function keepingRetention(
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
 * Whether the basin has a retention; undefined if the server decides, or the token does not permit looking.
 */
async function hasRetention(sender: CallSender, basin: string, signal: Signal): Promise<boolean | undefined> {
  if (!sender.settings.keepsForever) return undefined
  try {
    const { defaultStreamConfig } = await basinConfig(sender, basin, { signal })
    return defaultStreamConfig.retentionPolicy !== undefined
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'permission_denied') return undefined
    throw error
  }
}

/** Resolves to the configuration of a basin. */
export async function basinConfig(
  sender: CallSender,
  basin: string,
  options?: CallOptions,
): Promise<BasinConfig> {
  const signal = beginBasin(sender, basin, options)
  return sender.json(jsonCall('GET', `/basins/${basin}`, { signal }), basinConfigOf)
}
