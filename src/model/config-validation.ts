import type {
  BasinConfigInput,
  BasinReconfiguration,
  StreamConfigInput,
  StreamReconfiguration,
} from './config.ts'
import { invalid } from './errors.ts'
import { checkInteger } from './integers.ts'

const STORAGE_CLASSES: readonly unknown[] = ['standard', 'express']
const MODES: readonly unknown[] = ['client-prefer', 'client-require', 'arrival']
const CIPHERS: readonly unknown[] = ['aegis-256', 'aes-256-gcm']

/** Throws 422 `invalid` for a stream configuration, or a change of one, that has no meaning (wire-behaviour.md 2.3). */
export function checkStreamConfig(config: StreamConfigInput | StreamReconfiguration): void {
  oneOf(config.storageClass, STORAGE_CLASSES, 'storage_class')
  const { retentionPolicy } = config
  if (retentionPolicy !== undefined && retentionPolicy !== null && retentionPolicy !== 'infinite') {
    checkInteger(retentionPolicy.ageSeconds, 'age')
    if (retentionPolicy.ageSeconds === 0) throw invalid('age must be greater than 0 seconds', 'age')
  }
  oneOf(config.timestamping?.mode, MODES, 'mode')
  boolean(config.timestamping?.uncapped, 'uncapped')
  const minAge = config.deleteOnEmpty?.minAgeSeconds
  if (minAge !== undefined && minAge !== null) checkInteger(minAge, 'min_age_secs')
}

export function checkBasinConfig(config: BasinConfigInput | BasinReconfiguration): void {
  if (config.defaultStreamConfig) checkStreamConfig(config.defaultStreamConfig)
  oneOf(config.streamCipher, CIPHERS, 'stream_cipher')
  boolean(config.createStreamOnAppend, 'create_stream_on_append')
  boolean(config.createStreamOnRead, 'create_stream_on_read')
}

function oneOf(value: unknown, allowed: readonly unknown[], field: string): void {
  if (value !== undefined && value !== null && !allowed.includes(value)) {
    throw invalid(`${field} must be one of ${allowed.join(', ')}`, field)
  }
}

function boolean(value: unknown, field: string): void {
  if (value !== undefined && value !== null && typeof value !== 'boolean') {
    throw invalid(`${field} must be true or false`, field)
  }
}
