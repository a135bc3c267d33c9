import type { AccessTokenInfo, AccessTokenInput } from '../model/access.ts'
import type { AppendBatch } from '../model/append-input.ts'
import type {
  BasinConfig,
  BasinConfigInput,
  BasinReconfiguration,
  StreamConfig,
  StreamConfigInput,
  StreamReconfiguration,
} from '../model/config.ts'
import type {
  AppendAck,
  BasinInfo,
  ListQuery,
  LocationInfo,
  Page,
  Provisioned,
  StreamInfo,
} from '../model/info.ts'
import type {
  AccountMetricSet,
  BasinMetricSet,
  Metric,
  MetricsQuery,
  StreamMetricSet,
} from '../model/metrics.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import type { Identity } from './access/identity.ts'
import type { AppendSession, AppendSessionOptions } from './append-session.ts'
import type { StreamRef, StreamUse } from './context.ts'
import type { CreateBasinOptions } from './control/basins.ts'
import type { ReadCursor } from './read-cursor.ts'
import type { ReadSessionOptions } from './reading.ts'

/**
 * What an engine does for a caller, by what it is about. The owner of the engine has the services themselves; for the holder of an access token
 * there is a gate before each (`gate/`).
 */
export interface CallerServices {
  readonly basins: BasinService
  readonly streams: StreamService
  readonly records: RecordService
  readonly tokens: TokenService
  readonly metrics: MetricsService
  readonly locations: LocationService
}

/** Throws what a change that was decided on is refused for: the first argument says what it is. */
export type ChangeCheck = (change: 'create' | 'update') => void

export interface BasinService {
  create(name: string, config: BasinConfigInput, options: CreateBasinOptions): Promise<Provisioned<BasinInfo>>
  ensure(
    name: string,
    config: BasinConfigInput,
    options: CreateBasinOptions,
    check?: ChangeCheck,
  ): Promise<Provisioned<BasinInfo>>
  list(query: ListQuery): Promise<Page<BasinInfo>>
  config(name: string): Promise<BasinConfig>
  reconfigure(name: string, change: BasinReconfiguration): Promise<BasinConfig>
  delete(name: string): Promise<void>
}

export interface StreamService {
  create(
    ref: StreamRef,
    config: StreamConfigInput,
    requestToken: string | undefined,
  ): Promise<Provisioned<StreamInfo>>
  ensure(ref: StreamRef, config: StreamConfigInput, check?: ChangeCheck): Promise<Provisioned<StreamInfo>>
  list(basin: string, query: ListQuery): Promise<Page<StreamInfo>>
  config(ref: StreamRef): Promise<StreamConfig>
  reconfigure(ref: StreamRef, change: StreamReconfiguration): Promise<StreamConfig>
  delete(ref: StreamRef): Promise<void>
}

export interface RecordService {
  /** Appends made one after the other are stored in that order. */
  append(use: StreamUse, batch: AppendBatch): Promise<AppendAck>
  appendSession(use: StreamUse, options: AppendSessionOptions): Promise<AppendSession>
  readSession(use: StreamUse, query: ReadQuery, options: ReadSessionOptions): Promise<ReadCursor | undefined>
  readBatch(use: StreamUse, query: ReadQuery, signal: AbortSignal | undefined): Promise<ReadBatch>
  checkTail(use: StreamUse): Promise<StreamPosition>
}

export interface TokenService {
  /** Resolves to the token: told here and nowhere else. Without an issuer it is the owner. */
  issue(input: AccessTokenInput, issuer?: Identity): Promise<string>
  list(query: ListQuery): Promise<Page<AccessTokenInfo>>
  revoke(id: string): Promise<void>
}

export interface MetricsService {
  account(query: MetricsQuery<AccountMetricSet>): Promise<readonly Metric[]>
  basin(basin: string, query: MetricsQuery<BasinMetricSet>): Promise<readonly Metric[]>
  stream(ref: StreamRef, query: MetricsQuery<StreamMetricSet>): Promise<readonly Metric[]>
}

export interface LocationService {
  list(): Promise<readonly LocationInfo[]>
  default(): Promise<LocationInfo>
  setDefault(name: string): Promise<LocationInfo>
}
