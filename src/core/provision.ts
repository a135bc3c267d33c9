import type { BasinConfig, BasinConfigInput, StreamConfig, StreamConfigInput } from '../model/config.ts'
import { basinConfig } from './basin-config.ts'
import { normalizeStreamConfig } from './stream-reconfiguration.ts'

/**
 * Identifies one creation: the request token together with the configuration as it was sent, before any default (wire-behaviour.md 8.2).
 * Null when the request had no token: then it can't be told from another. Persisted: keep stable.
 */
export function basinCreationKey(token: string | undefined, sent: BasinConfigInput): string | null {
  return token === undefined ? null : JSON.stringify([token, basinConfig(sent)])
}

export function streamCreationKey(token: string | undefined, sent: StreamConfigInput): string | null {
  return token === undefined ? null : JSON.stringify([token, normalizeStreamConfig(sent)])
}

export interface Existing {
  readonly deleting: boolean
  /** The key of the creation that made it, null when it had none. */
  readonly creationKey: string | null
}

/** What a creation does (wire-behaviour.md 8.2): `noop` is an idempotent replay. */
export function decideCreate(
  existing: Existing | undefined,
  creationKey: string | null,
): 'create' | 'noop' | 'exists' | 'deleting' {
  if (existing === undefined) return 'create'
  if (existing.deleting) return 'deleting'
  return creationKey !== null && creationKey === existing.creationKey ? 'noop' : 'exists'
}

/** What an ensure does (wire-behaviour.md 8.3). */
export function decideEnsure<Config extends BasinConfig | StreamConfig>(
  existing: { readonly deleting: boolean; readonly config: Config } | undefined,
  desired: Config,
): 'create' | 'update' | 'noop' | 'deleting' {
  if (existing === undefined) return 'create'
  if (existing.deleting) return 'deleting'
  return sameConfig(existing.config, desired) ? 'noop' : 'update'
}

/** Equality of configurations that came from the functions of this room, which write members in one order. */
export function sameConfig<Config extends BasinConfig | StreamConfig>(a: Config, b: Config): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
