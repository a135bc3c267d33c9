import { describe, expect, it } from 'vitest'
import type { BasinReconfiguration, StreamReconfiguration } from '../../src/model/config.ts'
import { checkBasinConfig, checkStreamConfig } from '../../src/model/config-validation.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'
import { invalidMessage } from './refusal.ts'

const AGE_ZERO = 'age must be greater than 0 seconds'
const integer = (field: string) => `${field} must be an integer from 0 to 9007199254740991`
const wrong = <Value>(value: unknown) => value as Value

describe('a stream configuration (wire-behaviour.md 2.3)', () => {
  it.each<[StreamReconfiguration, string | undefined]>([
    [{}, undefined],
    [{ storageClass: null, retentionPolicy: null, timestamping: null, deleteOnEmpty: null }, undefined],
    [{ timestamping: { mode: null, uncapped: null }, deleteOnEmpty: { minAgeSeconds: null } }, undefined],
    [{ timestamping: {}, deleteOnEmpty: {} }, undefined],
    [{ storageClass: 'standard' }, undefined],
    [{ storageClass: 'express' }, undefined],
    [{ storageClass: wrong('glacier') }, 'storage_class must be one of standard, express'],
    [{ retentionPolicy: 'infinite' }, undefined],
    [{ retentionPolicy: { ageSeconds: 1 } }, undefined],
    [{ retentionPolicy: { ageSeconds: INTEGER_MAX } }, undefined],
    [{ retentionPolicy: { ageSeconds: 0 } }, AGE_ZERO],
    [{ retentionPolicy: { ageSeconds: -1 } }, integer('age')],
    [{ retentionPolicy: { ageSeconds: 1.5 } }, integer('age')],
    [{ retentionPolicy: wrong({}) }, integer('age')],
    [{ retentionPolicy: wrong('forever') }, integer('age')],
    [{ timestamping: { mode: 'client-prefer' } }, undefined],
    [{ timestamping: { mode: 'client-require' } }, undefined],
    [{ timestamping: { mode: 'arrival' } }, undefined],
    [
      { timestamping: { mode: wrong('server') } },
      'mode must be one of client-prefer, client-require, arrival',
    ],
    [{ timestamping: { uncapped: true } }, undefined],
    [{ timestamping: { uncapped: wrong('true') } }, 'uncapped must be true or false'],
    [{ deleteOnEmpty: { minAgeSeconds: 0 } }, undefined],
    [{ deleteOnEmpty: { minAgeSeconds: -1 } }, integer('min_age_secs')],
    [{ deleteOnEmpty: { minAgeSeconds: 0.5 } }, integer('min_age_secs')],
  ])('%j: %s', (config, message) => {
    expect(invalidMessage(() => checkStreamConfig(config))).toBe(message)
    expect(invalidMessage(() => checkBasinConfig({ defaultStreamConfig: config }))).toBe(message)
  })
})

describe('a basin configuration (wire-behaviour.md 2.3)', () => {
  it.each<[BasinReconfiguration, string | undefined]>([
    [{}, undefined],
    [
      { defaultStreamConfig: null, streamCipher: null, createStreamOnAppend: null, createStreamOnRead: null },
      undefined,
    ],
    [{ streamCipher: 'aegis-256', createStreamOnAppend: true, createStreamOnRead: false }, undefined],
    [{ streamCipher: 'aes-256-gcm' }, undefined],
    [{ streamCipher: wrong('rot13') }, 'stream_cipher must be one of aegis-256, aes-256-gcm'],
    [{ createStreamOnAppend: wrong(1) }, 'create_stream_on_append must be true or false'],
    [{ createStreamOnRead: wrong('false') }, 'create_stream_on_read must be true or false'],
  ])('%j: %s', (config, message) => {
    expect(invalidMessage(() => checkBasinConfig(config))).toBe(message)
  })
})
