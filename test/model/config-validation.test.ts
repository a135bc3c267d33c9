import { describe, expect, it } from 'vitest'
import {
  assertBasinConfig,
  assertStreamConfig,
  type BasinReconfiguration,
  type StreamReconfiguration,
} from '../../src/model/config.ts'
import { INTEGER_MAX } from '../../src/model/limits.ts'
import { invalidMessage } from './rejection.ts'

const AGE_ZERO = '`retentionPolicy.ageSeconds` must be greater than 0 seconds'
const AGE_RANGE = '`retentionPolicy.ageSeconds` must be an integer from 1 to 9007199254740991'
const integer = (field: string) => `\`${field}\` must be an integer from 0 to 9007199254740991`
const wrong = <Value>(value: unknown) => value as Value

describe('a stream configuration', () => {
  it.each<[StreamReconfiguration, string | undefined]>([
    [{}, undefined],
    [{ storageClass: null, retentionPolicy: null, timestamping: null, deleteOnEmpty: null }, undefined],
    [{ timestamping: { mode: null, uncapped: null }, deleteOnEmpty: { minAgeSeconds: null } }, undefined],
    [{ timestamping: {}, deleteOnEmpty: {} }, undefined],
    [{ storageClass: 'standard' }, undefined],
    [{ storageClass: 'express' }, undefined],
    [{ storageClass: wrong('glacier') }, '`storageClass` must be one of standard, express'],
    [{ retentionPolicy: 'infinite' }, undefined],
    [{ retentionPolicy: { ageSeconds: 1 } }, undefined],
    [{ retentionPolicy: { ageSeconds: INTEGER_MAX } }, undefined],
    [{ retentionPolicy: { ageSeconds: 0 } }, AGE_ZERO],
    [{ retentionPolicy: { ageSeconds: -1 } }, AGE_RANGE],
    [{ retentionPolicy: { ageSeconds: 1.5 } }, AGE_RANGE],
    [{ retentionPolicy: wrong({}) }, AGE_RANGE],
    [
      { retentionPolicy: wrong('forever') },
      "`retentionPolicy` must be 'infinite' or an object with `ageSeconds`",
    ],
    [{ timestamping: { mode: 'client-prefer' } }, undefined],
    [{ timestamping: { mode: 'client-require' } }, undefined],
    [{ timestamping: { mode: 'arrival' } }, undefined],
    [
      { timestamping: { mode: wrong('server') } },
      '`timestamping.mode` must be one of client-prefer, client-require, arrival',
    ],
    [{ timestamping: { uncapped: true } }, undefined],
    [{ timestamping: { uncapped: wrong('true') } }, '`timestamping.uncapped` must be true or false'],
    [{ deleteOnEmpty: { minAgeSeconds: 0 } }, undefined],
    [{ deleteOnEmpty: { minAgeSeconds: -1 } }, integer('deleteOnEmpty.minAgeSeconds')],
    [{ deleteOnEmpty: { minAgeSeconds: 0.5 } }, integer('deleteOnEmpty.minAgeSeconds')],
  ])('%j: %s', (config, message) => {
    expect(invalidMessage(() => assertStreamConfig(config))).toBe(message)
    expect(invalidMessage(() => assertBasinConfig({ defaultStreamConfig: config }))).toBe(message)
  })
})

describe('a basin configuration', () => {
  it.each<[BasinReconfiguration, string | undefined]>([
    [{}, undefined],
    [
      { defaultStreamConfig: null, streamCipher: null, createStreamOnAppend: null, createStreamOnRead: null },
      undefined,
    ],
    [{ streamCipher: 'aegis-256', createStreamOnAppend: true, createStreamOnRead: false }, undefined],
    [{ streamCipher: 'aes-256-gcm' }, undefined],
    [{ streamCipher: wrong('rot13') }, '`streamCipher` must be one of aegis-256, aes-256-gcm'],
    [{ createStreamOnAppend: wrong(1) }, '`createStreamOnAppend` must be true or false'],
    [{ createStreamOnRead: wrong('false') }, '`createStreamOnRead` must be true or false'],
  ])('%j: %s', (config, message) => {
    expect(invalidMessage(() => assertBasinConfig(config))).toBe(message)
  })
})
