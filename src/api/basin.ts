import type { BasinConfig, BasinReconfiguration, StreamConfigInput } from '../model/config.ts'
import {
  type ListQuery,
  type Page,
  type Provisioned,
  STREAM_CREATION,
  type StreamCreation,
  type StreamInfo,
} from '../model/info.ts'
import type { BasinMetricSet, Metric, MetricsQuery } from '../model/metrics.ts'
import type { MembersOf } from '../model/validation.ts'
import { CALL_OPTIONS, type CallOptions, type StreamOptions } from './call-options.ts'
import { existsBy, type ListAllQuery, listAll } from './lists.ts'
import type { Stream } from './stream.ts'

/** Options of `createBasin`. */
export interface CreateOptions extends CallOptions {
  /** Makes a repeated creation with the same configuration a `noop` instead of an error. At most 36 bytes. */
  readonly requestToken?: string | undefined
}

export const CREATE_OPTIONS: MembersOf<CreateOptions> = { ...CALL_OPTIONS, requestToken: 'string' }

/** Options of `createStream`. */
export interface CreateStreamOptions extends CreateOptions, StreamCreation {}

export const CREATE_STREAM_OPTIONS: MembersOf<CreateStreamOptions> = {
  ...CREATE_OPTIONS,
  ...STREAM_CREATION,
}

/**
 * A handle of a basin, made by `hw.basin(name)`. It costs nothing.
 *
 * Errors of all methods: `basin_not_found`, `basin_deletion_pending`, `invalid` for malformed input,
 * `storage`, `transaction_conflict` when other engines kept changing the same object first, `closed` once the
 * engine or the client is closed, and for holders of access tokens `authn` and `permission_denied`.
 */
export abstract class Basin {
  readonly name: string

  /** @internal */
  constructor(name: string) {
    this.name = name
  }

  /**
   * Returns a handle of a stream (name: 1 to 512 bytes), whether it exists or not. Throws `invalid` for a
   * name that is not a string, and for malformed options.
   */
  abstract stream(name: string, options?: StreamOptions): Stream

  /**
   * Creates a stream. With `fork` or `records`, it appears with these records or not at all.
   *
   * Errors:
   * - `resource_already_exists` if it exists, unless the request token shows that the call is a repetition
   * - `stream_deletion_pending` if the name, or that of the fork's source, is that of a deleted stream with
   *   forks
   * - `stream_not_found` if the source does not exist, `invalid` if the fork begins beyond its tail,
   *   `history_trimmed` if records below that were trimmed or have expired
   * - `unsupported` by a client, for `metadata`, `expiry`, `fork` and `records`
   *
   * ```ts
   * await basin.createStream('orders', { retentionPolicy: { ageSeconds: 30 * 86_400 } })
   * await basin.createStream('draft', {}, { fork: { stream: 'orders' }, expiry: { idleSeconds: 3_600 } })
   * ```
   */
  abstract createStream(
    name: string,
    config?: StreamConfigInput,
    options?: CreateStreamOptions,
  ): Promise<Provisioned<StreamInfo>>

  /** Makes the stream exist with exactly this configuration over the basin's defaults. */
  abstract ensureStream(
    name: string,
    config?: StreamConfigInput,
    options?: CallOptions,
  ): Promise<Provisioned<StreamInfo>>

  /** Lists streams in the order of the UTF-8 bytes of their names, at most 1,000 per page. */
  abstract listStreams(query?: ListQuery, options?: CallOptions): Promise<Page<StreamInfo>>

  /** Resolves to the configuration of the basin. Rejects with `basin_not_found`. */
  abstract config(options?: CallOptions): Promise<BasinConfig>

  /**
   * Changes the configuration: an absent member keeps its value, `null` clears it. Resolves to the whole new
   * configuration. Rejects with `basin_not_found` or `basin_deletion_pending`.
   */
  abstract reconfigure(change: BasinReconfiguration, options?: CallOptions): Promise<BasinConfig>

  /**
   * Deletes the basin and its streams. Resolves when the streams are deleted: no append to them that begins
   * later is acknowledged. Background work then removes the basin, and its name stays reserved until that is
   * done. Rejects with `basin_not_found`.
   */
  abstract delete(options?: CallOptions): Promise<void>

  /** Resolves to usage metrics of the basin. Rejects with `unsupported` unless usage is metered. */
  abstract metrics(query: MetricsQuery<BasinMetricSet>, options?: CallOptions): Promise<readonly Metric[]>

  /** Resolves to whether the basin exists and is not being deleted. Needs the permission of `config`. */
  exists(options?: CallOptions): Promise<boolean> {
    return existsBy(this.config(options))
  }

  /** Iterates over all streams, one page at a time. */
  listAllStreams(
    query: ListAllQuery = {},
    options?: CallOptions,
  ): AsyncGenerator<StreamInfo, void, undefined> {
    return listAll(
      query,
      (page) => this.listStreams(page, options),
      ({ name }) => name,
    )
  }
}
