/** The JSON of the wire protocol that the console uses (docs/protocol.md). */

export interface BasinInfo {
  readonly name: string
  readonly location?: string | null
  readonly state?: string
  readonly created_at?: string
  readonly deleted_at?: string | null
}

export interface StreamInfo {
  readonly name: string
  readonly created_at: string
  readonly deleted_at?: string | null
  readonly cipher?: string | null
}

export interface StreamConfig {
  readonly storage_class?: string | null
  readonly retention_policy?: { readonly age: number } | { readonly infinite: object } | null
  readonly timestamping?: { readonly mode?: string | null; readonly uncapped?: boolean | null } | null
  readonly delete_on_empty?: { readonly min_age_secs?: number } | null
}

export interface BasinConfig {
  readonly default_stream_config?: StreamConfig | null
  readonly stream_cipher?: string | null
  readonly create_stream_on_append?: boolean
  readonly create_stream_on_read?: boolean
}

export type ResourceSet = { readonly exact: string } | { readonly prefix: string }

export type GroupLevel = 'account' | 'basin' | 'stream'
export type GroupAccess = 'read' | 'write'

export interface TokenScope {
  readonly basins?: ResourceSet | null
  readonly streams?: ResourceSet | null
  readonly access_tokens?: ResourceSet | null
  readonly op_groups?: Partial<Record<GroupLevel, Partial<Record<GroupAccess, boolean>> | null>> | null
  readonly ops?: readonly string[] | null
}

export interface TokenInfo {
  readonly id: string
  readonly expires_at?: string | null
  readonly auto_prefix_streams?: boolean
  readonly scope: TokenScope
}

export interface Position {
  readonly seq_num: number
  readonly timestamp: number
}

/** As read with the format `base64`. */
export interface WireRecord {
  readonly seq_num: number
  readonly timestamp: number
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string
}

export interface ReadBatch {
  readonly records: readonly WireRecord[]
  readonly tail?: Position
}

export interface AppendRecord {
  readonly timestamp?: number
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly body?: string
}

export interface AppendInput {
  readonly records: readonly AppendRecord[]
  readonly match_seq_num?: number
  readonly fencing_token?: string
}

export interface AppendAck {
  readonly start: Position
  readonly end: Position
  readonly tail: Position
}

/** Seconds since the Unix epoch, and the value of the interval that begins then. */
export type MetricPoint = readonly [time: number, value: number]

interface MetricSeries {
  readonly name: string
  readonly unit: string
  readonly interval?: string
  readonly values: readonly MetricPoint[]
}

export interface Metric {
  readonly scalar?: { readonly name: string; readonly unit: string; readonly value: number }
  readonly accumulation?: MetricSeries
  readonly gauge?: MetricSeries
  readonly label?: { readonly name: string; readonly values: readonly string[] }
}
