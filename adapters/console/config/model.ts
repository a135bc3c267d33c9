import type { BasinConfig, StreamConfig } from '../api/types.ts'
import { DURATION_UNITS } from '../format.ts'

/** The fields of a stream configuration. An empty string inherits the default. */
export interface StreamFields {
  readonly storageClass: '' | 'standard' | 'express'
  readonly retention: '' | 'age' | 'infinite'
  readonly age: Duration
  readonly mode: '' | 'client-prefer' | 'client-require' | 'arrival'
  readonly uncapped: '' | 'true' | 'false'
  readonly deleteOnEmpty: '' | 'off' | 'after'
  readonly minAge: Duration
}

/** The fields of a basin configuration. */
export interface BasinFields {
  readonly streams: StreamFields
  readonly cipher: '' | 'aes-256-gcm' | 'aegis-256'
  readonly createOnAppend: boolean
  readonly createOnRead: boolean
}

/** A number of units of time, as the text of a field. */
export interface Duration {
  readonly count: string
  /** The unit in seconds. */
  readonly unit: number
}

/** The fields of a configuration; undefined is one that sets nothing. */
export function streamFields(config?: StreamConfig | null): StreamFields {
  const { storage_class, retention_policy, timestamping, delete_on_empty } = config ?? {}
  const age = retention_policy && 'age' in retention_policy ? retention_policy.age : undefined
  const minAge = delete_on_empty?.min_age_secs
  const { uncapped } = timestamping ?? {}
  return {
    storageClass: (storage_class ?? '') as StreamFields['storageClass'],
    retention: retention_policy == null ? '' : age === undefined ? 'infinite' : 'age',
    age: durationOf(age ?? 604_800),
    mode: (timestamping?.mode ?? '') as StreamFields['mode'],
    uncapped: uncapped == null ? '' : uncapped ? 'true' : 'false',
    deleteOnEmpty: minAge === undefined ? '' : minAge === 0 ? 'off' : 'after',
    minAge: durationOf(minAge || 3600),
  }
}

/** The fields of a basin's configuration. */
export function basinFields(config?: BasinConfig): BasinFields {
  return {
    streams: streamFields(config?.default_stream_config),
    cipher: (config?.stream_cipher ?? '') as BasinFields['cipher'],
    createOnAppend: config?.create_stream_on_append ?? false,
    createOnRead: config?.create_stream_on_read ?? false,
  }
}

/**
 * The configuration of fields. Inherited settings are null: a new resource gets the default, and `PATCH`
 * returns to it. Throws an error with a message for people.
 */
export function streamConfigOf(fields: StreamFields): StreamConfig {
  const { storageClass, retention, mode, uncapped, deleteOnEmpty } = fields
  return {
    storage_class: storageClass || null,
    retention_policy: retention === '' ? null : retentionOf(fields),
    timestamping:
      mode === '' && uncapped === ''
        ? null
        : { mode: mode || null, uncapped: uncapped === '' ? null : uncapped === 'true' },
    delete_on_empty:
      deleteOnEmpty === ''
        ? null
        : { min_age_secs: deleteOnEmpty === 'off' ? 0 : secondsOf(fields.minAge, 'Delete when empty') },
  }
}

/** The configuration of a basin's fields. */
export function basinConfigOf(fields: BasinFields): BasinConfig {
  const streams = streamConfigOf(fields.streams)
  const isDefault = Object.values(streams).every((setting) => setting === null)
  return {
    default_stream_config: isDefault ? null : streams,
    stream_cipher: fields.cipher || null,
    create_stream_on_append: fields.createOnAppend,
    create_stream_on_read: fields.createOnRead,
  }
}

function retentionOf({ retention, age }: StreamFields): NonNullable<StreamConfig['retention_policy']> {
  return retention === 'infinite' ? { infinite: {} } : { age: secondsOf(age, 'Retention') }
}

function durationOf(seconds: number): Duration {
  const [unit] = DURATION_UNITS.find(([size]) => seconds >= size && seconds % size === 0) ?? [1]
  return { count: String(seconds / unit), unit }
}

/** Throws an error with a message for people unless the duration is positive. */
export function secondsOf({ count, unit }: Duration, field: string): number {
  const seconds = /^[0-9]+$/.test(count.trim()) ? Number(count) * unit : 0
  if (seconds > 0 && Number.isSafeInteger(seconds)) return seconds
  throw new Error(`${field}: ${JSON.stringify(count)} is not a positive whole number`)
}
