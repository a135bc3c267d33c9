import type {
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  StorageClass,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from '../../../src/model/config.ts'
import { DURATION_UNITS } from '../format.ts'

/** The fields of a stream configuration. An empty string inherits the default. */
export interface StreamFields {
  readonly storageClass: '' | StorageClass
  readonly retention: '' | 'age' | 'infinite'
  readonly age: Duration
  readonly mode: '' | TimestampingMode
  readonly uncapped: '' | 'true' | 'false'
  readonly deleteOnEmpty: '' | 'off' | 'after'
  readonly minAge: Duration
}

/** The fields of a basin configuration. */
export interface BasinFields {
  readonly streams: StreamFields
  readonly cipher: '' | Cipher
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
export function streamFields(config: StreamConfigInput = {}): StreamFields {
  const { storageClass, retentionPolicy, timestamping, deleteOnEmpty } = config
  const age = typeof retentionPolicy === 'object' ? retentionPolicy.ageSeconds : undefined
  const minAge = deleteOnEmpty?.minAgeSeconds
  const { mode, uncapped } = timestamping ?? {}
  return {
    storageClass: storageClass ?? '',
    retention: retentionPolicy === undefined ? '' : age === undefined ? 'infinite' : 'age',
    age: durationOf(age ?? 604_800),
    mode: mode ?? '',
    uncapped: uncapped === undefined ? '' : uncapped ? 'true' : 'false',
    deleteOnEmpty: minAge === undefined ? '' : minAge === 0 ? 'off' : 'after',
    minAge: durationOf(minAge || 3600),
  }
}

/** The fields of a basin's configuration. */
export function basinFields(config: BasinConfigInput = {}): BasinFields {
  return {
    streams: streamFields(config.defaultStreamConfig),
    cipher: config.streamCipher ?? '',
    createOnAppend: config.createStreamOnAppend ?? false,
    createOnRead: config.createStreamOnRead ?? false,
  }
}

/**
 * The configuration of fields. Inherited settings are null: a new resource gets the default, and a change
 * returns to it. Throws an error with a message for people.
 */
export function streamChangeOf(fields: StreamFields): StreamReconfiguration {
  const { storageClass, retention, mode, uncapped, deleteOnEmpty } = fields
  const isTimestampingInherited = mode === '' && uncapped === ''
  return {
    storageClass: storageClass || null,
    retentionPolicy:
      retention === 'age' ? { ageSeconds: secondsOf(fields.age, 'Retention') } : retention || null,
    timestamping: isTimestampingInherited
      ? null
      : { mode: mode || null, uncapped: uncapped === '' ? null : uncapped === 'true' },
    deleteOnEmpty:
      deleteOnEmpty === ''
        ? null
        : { minAgeSeconds: deleteOnEmpty === 'off' ? 0 : secondsOf(fields.minAge, 'Delete when empty') },
  }
}

/** The configuration of a basin's fields. */
export function basinChangeOf(fields: BasinFields): BasinReconfiguration {
  const streams = streamChangeOf(fields.streams)
  const isDefault = Object.values(streams).every((setting) => setting === null)
  return {
    defaultStreamConfig: isDefault ? null : streams,
    streamCipher: fields.cipher || null,
    createStreamOnAppend: fields.createOnAppend,
    createStreamOnRead: fields.createOnRead,
  }
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
