import type { BasinConfig, BasinConfigInput, StreamConfig, StreamConfigInput } from '../model/config.ts'
import { basinConfig, normalizeStreamConfig } from './config.ts'

/**
 * Identifies the creation of a basin by its request token and its configuration before defaults
 * (docs/protocol.md "Creating"). Null without a token: such a request cannot be distinguished from another.
 * Persisted.
 */
export function basinCreationKey(token: string | undefined, sent: BasinConfigInput): string | null {
  return token === undefined ? null : JSON.stringify([token, basinConfig(sent)])
}

/** Identifies the creation of a stream, as {@link basinCreationKey} does. */
export function streamCreationKey(token: string | undefined, sent: StreamConfigInput): string | null {
  return token === undefined ? null : JSON.stringify([token, normalizeStreamConfig(sent)])
}

/**
 * Decides about a creation (docs/protocol.md "Creating"). `noop` is a repeated request. The key of something
 * that exists is null if its creation had no token.
 */
export function decideCreate(
  existing: { readonly creationKey: string | null } | undefined,
  creationKey: string | null,
): 'create' | 'noop' | 'exists' {
  if (existing === undefined) return 'create'
  return creationKey !== null && creationKey === existing.creationKey ? 'noop' : 'exists'
}

/** Decides about ensuring a basin or stream (docs/protocol.md "Ensuring"). */
export function decideEnsure<Config extends BasinConfig | StreamConfig>(
  existing: { readonly config: Config } | undefined,
  desired: Config,
): 'create' | 'update' | 'noop' {
  if (existing === undefined) return 'create'
  return sameConfig(existing.config, desired) ? 'noop' : 'update'
}

/** Whether two configurations are equal. Both must be normalized: the order of members counts. */
export function sameConfig<Config extends BasinConfig | StreamConfig>(a: Config, b: Config): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
