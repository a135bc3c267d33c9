export type StorageClass = 'standard' | 'express'
export type TimestampingMode = 'client-prefer' | 'client-require' | 'arrival'
export type Cipher = 'aegis-256' | 'aes-256-gcm'
export type RetentionPolicy = { readonly ageSeconds: number } | 'infinite'

/** The whole configuration of a stream (wire-behaviour.md 8.4). */
export interface StreamConfig {
  readonly storageClass: StorageClass
  /** How long a record is kept, counted from when it was appended. The policy at that time sticks to the record. */
  readonly retentionPolicy: RetentionPolicy
  readonly timestamping: {
    readonly mode: TimestampingMode
    /** Whether a client's timestamp may lie in the future. */
    readonly uncapped: boolean
  }
  /** A stream without records is deleted once nothing was written for this long; 0 is never. */
  readonly deleteOnEmpty: { readonly minAgeSeconds: number }
}

/** A stream configuration as given: what is absent comes from the basin's default, then from the system's. */
export interface StreamConfigInput {
  readonly storageClass?: StorageClass | undefined
  readonly retentionPolicy?: RetentionPolicy | undefined
  readonly timestamping?:
    | { readonly mode?: TimestampingMode | undefined; readonly uncapped?: boolean | undefined }
    | undefined
  readonly deleteOnEmpty?: { readonly minAgeSeconds?: number | undefined } | undefined
}

export interface BasinConfig {
  /** Only what was set explicitly. */
  readonly defaultStreamConfig: StreamConfigInput
  /** Copied to each new stream; never changed on an existing one. */
  readonly streamCipher: Cipher | null
  readonly createStreamOnAppend: boolean
  readonly createStreamOnRead: boolean
}

export interface BasinConfigInput {
  readonly defaultStreamConfig?: StreamConfigInput | undefined
  readonly streamCipher?: Cipher | null | undefined
  readonly createStreamOnAppend?: boolean | undefined
  readonly createStreamOnRead?: boolean | undefined
}

/** A change of a stream: absent keeps, `null` returns to the basin's default, a value sets (wire-behaviour.md 8.5). */
export interface StreamReconfiguration {
  readonly storageClass?: StorageClass | null | undefined
  readonly retentionPolicy?: RetentionPolicy | null | undefined
  readonly timestamping?:
    | { readonly mode?: TimestampingMode | null | undefined; readonly uncapped?: boolean | null | undefined }
    | null
    | undefined
  readonly deleteOnEmpty?: { readonly minAgeSeconds?: number | null | undefined } | null | undefined
}

/** A change of a basin: absent keeps, `null` clears, a value sets. `null` keeps the two booleans as they are. */
export interface BasinReconfiguration {
  readonly defaultStreamConfig?: StreamReconfiguration | null | undefined
  readonly streamCipher?: Cipher | null | undefined
  readonly createStreamOnAppend?: boolean | null | undefined
  readonly createStreamOnRead?: boolean | null | undefined
}
