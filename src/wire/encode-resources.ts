import { basinConfig, normalizeStreamConfig } from '../core/config.ts'
import { listLimit } from '../core/listing.ts'
import type { AccessTokenInput } from '../model/access.ts'
import type {
  BasinConfigInput,
  BasinReconfiguration,
  StreamConfigInput,
  StreamReconfiguration,
} from '../model/config.ts'
import type { ListQuery } from '../model/info.ts'
import type { MetricsQuery } from '../model/metrics.ts'
import { millisecondsOf, type Time } from '../model/validation.ts'
import type { QueryParts } from './encode-query.ts'

/** Encodes the configuration of a new stream (docs/protocol.md "Configuration"). */
export function streamConfigText(config: StreamConfigInput): string {
  return JSON.stringify(streamForm(normalizeStreamConfig(config)))
}

/** Encodes the body of POST streams. */
export function createStreamText(stream: string, config: StreamConfigInput): string {
  return JSON.stringify({ stream, config: streamForm(normalizeStreamConfig(config)) })
}

/** Encodes the body of POST basins. */
export function createBasinText(basin: string, config: BasinConfigInput): string {
  return JSON.stringify({ basin, config: basinForm(basinConfig(config)) })
}

/** Encodes the body of PUT of a basin. */
export function ensureBasinText(config: BasinConfigInput): string {
  return JSON.stringify({ config: basinForm(basinConfig(config)) })
}

/** Encodes the body of PATCH of a stream (docs/protocol.md "Reconfiguring"). */
export function streamChangeText(change: StreamReconfiguration): string {
  return JSON.stringify(streamForm(change))
}

/** Encodes the body of PATCH of a basin. */
export function basinChangeText(change: BasinReconfiguration): string {
  return JSON.stringify(basinForm(change))
}

function basinForm(config: BasinReconfiguration): object {
  const { defaultStreamConfig, streamCipher, createStreamOnAppend, createStreamOnRead } = config
  return {
    default_stream_config: defaultStreamConfig && streamForm(defaultStreamConfig),
    stream_cipher: streamCipher,
    // Null would keep the value, and is not allowed.
    create_stream_on_append: createStreamOnAppend ?? undefined,
    create_stream_on_read: createStreamOnRead ?? undefined,
  }
}

/** Undefined members are left out by JSON. */
function streamForm({
  storageClass,
  retentionPolicy,
  timestamping,
  deleteOnEmpty,
}: StreamReconfiguration): object {
  const minAgeSeconds = deleteOnEmpty?.minAgeSeconds
  return {
    storage_class: storageClass,
    retention_policy:
      retentionPolicy === 'infinite'
        ? { infinite: {} }
        : retentionPolicy && { age: retentionPolicy.ageSeconds },
    timestamping: timestamping && { mode: timestamping.mode, uncapped: timestamping.uncapped },
    delete_on_empty:
      minAgeSeconds === undefined ? deleteOnEmpty && undefined : { min_age_secs: minAgeSeconds },
  }
}

/** Encodes the body of POST access-tokens (docs/protocol.md "Issuing a token"). */
export function accessTokenText({ id, expiresAt, autoPrefixStreams, scope }: AccessTokenInput): string {
  const { basins, streams, accessTokens, opGroups, ops } = scope
  return JSON.stringify({
    id,
    expires_at: expiresAt == null ? undefined : new Date(millisecondsOf(expiresAt)).toISOString(),
    auto_prefix_streams: autoPrefixStreams,
    scope: { basins, streams, access_tokens: accessTokens, op_groups: opGroups, ops },
  })
}

/** Encodes the query of a list. */
export function listQueryParts({ prefix, startAfter, limit }: ListQuery): QueryParts {
  return { prefix: prefix || undefined, start_after: startAfter || undefined, limit: listLimit(limit) }
}

/** Encodes the query of metrics. Times are rounded to the seconds that contain the range. */
export function metricsQueryParts({ set, start, end, interval }: MetricsQuery): QueryParts {
  const seconds = (time: Time | undefined, round: (value: number) => number) =>
    time === undefined ? undefined : round(millisecondsOf(time) / 1000)
  return { set, start: seconds(start, Math.floor), end: seconds(end, Math.ceil), interval }
}
