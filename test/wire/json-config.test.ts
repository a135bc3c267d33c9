import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { BasinConfig, StreamConfig } from '../../src/model/config.ts'
import {
  basinConfigJson,
  decodeBasinReconfiguration,
  decodeStreamConfigHeader,
  decodeStreamReconfiguration,
  streamConfigJson,
} from '../../src/wire/json-config.ts'
import { decodeEnsureBasin, decodeEnsureStream } from '../../src/wire/json-resources.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

const LIMIT = 'must be an integer from 0 to 9007199254740991'

/** Values that are invalid in every stream configuration. */
const MISSHAPEN_STREAM_MEMBERS: [problem: string, member: string][] = [
  ['an unknown storage class', '"storage_class":"fast"'],
  ['a storage class in other letters', '"storage_class":"Standard"'],
  ['a storage class that is a number', '"storage_class":1'],
  ['a retention policy that is a string', '"retention_policy":"infinite"'],
  ['an empty retention policy', '"retention_policy":{}'],
  ['two retention policies', '"retention_policy":{"age":1,"infinite":{}}'],
  ['a retention policy with an unknown member', '"retention_policy":{"age":1,"what":1}'],
  ['an unknown retention policy', '"retention_policy":{"size":1}'],
  ['a negative age', '"retention_policy":{"age":-1}'],
  ['a fractional age', '"retention_policy":{"age":1.5}'],
  ['an age in a string', '"retention_policy":{"age":"1"}'],
  ['a null age', '"retention_policy":{"age":null}'],
  ['an age beyond 2^64 - 1', '"retention_policy":{"age":18446744073709555000}'],
  ['infinite null', '"retention_policy":{"infinite":null}'],
  ['infinite true', '"retention_policy":{"infinite":true}'],
  ['timestamping that is a string', '"timestamping":"arrival"'],
  ['an unknown mode', '"timestamping":{"mode":"now"}'],
  ['uncapped as a string', '"timestamping":{"uncapped":"true"}'],
  ['delete_on_empty as a number', '"delete_on_empty":1'],
  ['a negative min_age_secs', '"delete_on_empty":{"min_age_secs":-1}'],
  ['a fractional min_age_secs', '"delete_on_empty":{"min_age_secs":0.5}'],
]

const AGE_LIMIT = '`retentionPolicy.ageSeconds` must be an integer from 1 to 9007199254740991'

/** Members of a valid shape with invalid values. */
const INVALID_STREAM_MEMBERS: [member: string, message: string][] = [
  ['"retention_policy":{"age":0}', '`retentionPolicy.ageSeconds` must be greater than 0 seconds'],
  ['"retention_policy":{"age":9007199254740992}', AGE_LIMIT],
  ['"retention_policy":{"age":18446744073709551615}', AGE_LIMIT],
  ['"delete_on_empty":{"min_age_secs":9007199254740993}', `\`deleteOnEmpty.minAgeSeconds\` ${LIMIT}`],
]

const decoders: [name: string, decode: (members: string) => unknown][] = [
  ['PUT of a stream', (members) => decodeEnsureStream(utf8(`{${members}}`))],
  ['PATCH of a stream', (members) => decodeStreamReconfiguration(utf8(`{${members}}`))],
  [
    'PUT of a basin',
    (members) => decodeEnsureBasin(utf8(`{"config":{"default_stream_config":{${members}}}}`)),
  ],
  [
    'PATCH of a basin',
    (members) => decodeBasinReconfiguration(utf8(`{"default_stream_config":{${members}}}`)),
  ],
]

describe.each(decoders)('%s', (_, decode) => {
  it.each(MISSHAPEN_STREAM_MEMBERS)('rejects %s', (_problem, member) => {
    expect(outcomeOf(() => decode(member))).toBe('400 bad_json')
  })

  it.each(INVALID_STREAM_MEMBERS)('rejects %s', (member, message) => {
    expect(outcomeOf(() => decode(member))).toBe('422 invalid')
    expect(rejection(() => decode(member))?.message).toBe(message)
  })

  it('reports a wrong shape before an invalid value', () => {
    expect(outcomeOf(() => decode('"retention_policy":{"age":0},"delete_on_empty":1'))).toBe('400 bad_json')
  })

  it('ignores unknown members', () => {
    expect(
      outcomeOf(() => decode('"what":{"age":0},"timestamping":{"what":1},"delete_on_empty":{"x":1}')),
    ).toBe('accepted')
    expect(outcomeOf(() => decode('"retention_policy":{"infinite":{"what":1}}'))).toBe('accepted')
  })

  it('is rejected if it is not an object', () => {
    expect(outcomeOf(() => decode('"default_stream_config":1,'))).toBe('400 bad_json')
  })
})

describe('a stream configuration', () => {
  it.each([
    ['{}', {}],
    ['{"storage_class":"standard"}', { storageClass: 'standard' }],
    ['{"storage_class":"express"}', { storageClass: 'express' }],
    ['{"retention_policy":{"age":1}}', { retentionPolicy: { ageSeconds: 1 } }],
    [
      '{"retention_policy":{"age":9007199254740991}}',
      { retentionPolicy: { ageSeconds: 9_007_199_254_740_991 } },
    ],
    ['{"retention_policy":{"infinite":{}}}', { retentionPolicy: 'infinite' }],
    ['{"timestamping":{"mode":"client-prefer"}}', { timestamping: { mode: 'client-prefer' } }],
    ['{"timestamping":{"mode":"client-require"}}', { timestamping: { mode: 'client-require' } }],
    [
      '{"timestamping":{"mode":"arrival","uncapped":true}}',
      { timestamping: { mode: 'arrival', uncapped: true } },
    ],
    ['{"timestamping":{"uncapped":false}}', { timestamping: { uncapped: false } }],
    ['{"delete_on_empty":{"min_age_secs":60}}', { deleteOnEmpty: { minAgeSeconds: 60 } }],
    ['{"delete_on_empty":{"min_age_secs":0}}', { deleteOnEmpty: { minAgeSeconds: 0 } }],
    ['{"delete_on_empty":{}}', { deleteOnEmpty: { minAgeSeconds: 0 } }],
  ])('%s', (text, config) => {
    expect(decodeEnsureStream(utf8(text))).toStrictEqual(config)
    expect(decodeStreamConfigHeader(text)).toStrictEqual(config)
    expect(decodeEnsureBasin(utf8(`{"config":{"default_stream_config":${text}}}`)).config).toStrictEqual(
      text === '{}' ? {} : { defaultStreamConfig: config },
    )
  })

  it('is the same with null members as without', () => {
    const nulls =
      '{"storage_class":null,"retention_policy":null,"timestamping":{"mode":null,"uncapped":null},"delete_on_empty":null}'
    expect(decodeEnsureStream(utf8(nulls))).toStrictEqual({})
    expect(decodeEnsureStream(utf8('{"timestamping":null}'))).toStrictEqual({})
    expect(decodeEnsureBasin(utf8(`{"config":{"default_stream_config":${nulls}}}`)).config).toStrictEqual({})
  })

  it('rejects null for min_age_secs', () => {
    const text = '{"delete_on_empty":{"min_age_secs":null}}'
    expect(outcomeOf(() => decodeEnsureStream(utf8(text)))).toBe('400 bad_json')
  })
})

describe('a basin configuration', () => {
  it('is decoded', () => {
    const text =
      '{"config":{"stream_cipher":"aes-256-gcm","create_stream_on_append":true,"create_stream_on_read":false}}'
    expect(decodeEnsureBasin(utf8(text)).config).toStrictEqual({
      streamCipher: 'aes-256-gcm',
      createStreamOnAppend: true,
      createStreamOnRead: false,
    })
  })

  it('is the same with null members as without', () => {
    const text = '{"config":{"default_stream_config":null,"stream_cipher":null}}'
    expect(decodeEnsureBasin(utf8(text)).config).toStrictEqual({})
  })

  it.each([
    '"create_stream_on_append":null',
    '"create_stream_on_read":null',
    '"create_stream_on_append":1',
    '"create_stream_on_read":"true"',
    '"stream_cipher":"aes"',
    '"stream_cipher":"AES-256-GCM"',
    '"default_stream_config":[]',
  ])('is rejected with %s', (member) => {
    expect(outcomeOf(() => decodeEnsureBasin(utf8(`{"config":{${member}}}`)))).toBe('400 bad_json')
  })
})

describe('PATCH of a stream', () => {
  it.each([
    ['{}', {}],
    ['{"storage_class":null}', { storageClass: null }],
    ['{"storage_class":"standard"}', { storageClass: 'standard' }],
    ['{"retention_policy":null}', { retentionPolicy: null }],
    ['{"retention_policy":{"infinite":{}}}', { retentionPolicy: 'infinite' }],
    ['{"retention_policy":{"age":7}}', { retentionPolicy: { ageSeconds: 7 } }],
    ['{"timestamping":null}', { timestamping: null }],
    ['{"timestamping":{}}', { timestamping: {} }],
    ['{"timestamping":{"mode":null}}', { timestamping: { mode: null } }],
    [
      '{"timestamping":{"mode":"arrival","uncapped":null}}',
      { timestamping: { mode: 'arrival', uncapped: null } },
    ],
    ['{"delete_on_empty":null}', { deleteOnEmpty: null }],
    ['{"delete_on_empty":{}}', { deleteOnEmpty: {} }],
    ['{"delete_on_empty":{"min_age_secs":null}}', { deleteOnEmpty: { minAgeSeconds: null } }],
    ['{"delete_on_empty":{"min_age_secs":5}}', { deleteOnEmpty: { minAgeSeconds: 5 } }],
  ])('%s keeps, clears and sets', (text, change) => {
    expect(decodeStreamReconfiguration(utf8(text))).toStrictEqual(change)
    const basin = utf8(`{"default_stream_config":${text}}`)
    expect(decodeBasinReconfiguration(basin)).toStrictEqual({ defaultStreamConfig: change })
  })

  it.each(['null', '[]', '"x"', '', '{'])('is rejected with %j as its body', (text) => {
    expect(outcomeOf(() => decodeStreamReconfiguration(utf8(text)))).toBe('400 bad_json')
    expect(outcomeOf(() => decodeBasinReconfiguration(utf8(text)))).toBe('400 bad_json')
  })
})

describe('PATCH of a basin', () => {
  it.each([
    ['{}', {}],
    ['{"default_stream_config":null}', { defaultStreamConfig: null }],
    ['{"stream_cipher":null}', { streamCipher: null }],
    ['{"stream_cipher":"aegis-256"}', { streamCipher: 'aegis-256' }],
    ['{"create_stream_on_append":true}', { createStreamOnAppend: true }],
    ['{"create_stream_on_read":false}', { createStreamOnRead: false }],
    ['{"create_stream_on_append":null,"create_stream_on_read":null}', {}],
  ])('%s', (text, change) => {
    expect(decodeBasinReconfiguration(utf8(text))).toStrictEqual(change)
  })

  it.each(['"create_stream_on_append":0', '"stream_cipher":"none"'])('is rejected with %s', (member) => {
    expect(outcomeOf(() => decodeBasinReconfiguration(utf8(`{${member}}`)))).toBe('400 bad_json')
  })
})

describe('the header with a stream configuration', () => {
  it.each(['', 'null', '{', '[]', '{"storage_class":"fast"}'])('is rejected as %j', (text) => {
    expect(outcomeOf(() => decodeStreamConfigHeader(text))).toBe('400 bad_header')
  })

  it('is rejected if its values are invalid', () => {
    expect(outcomeOf(() => decodeStreamConfigHeader('{"retention_policy":{"age":0}}'))).toBe('422 invalid')
  })
})

describe('the encoded configuration', () => {
  const stream: StreamConfig = {
    storageClass: 'express',
    retentionPolicy: { ageSeconds: 604_800 },
    timestamping: { mode: 'client-prefer', uncapped: false },
    deleteOnEmpty: { minAgeSeconds: 0 },
  }

  it('has every member of a stream configuration', () => {
    expect(streamConfigJson(stream)).toBe(
      '{"storage_class":"express","retention_policy":{"age":604800},"timestamping":{"mode":"client-prefer","uncapped":false},"delete_on_empty":{"min_age_secs":0}}',
    )
    expect(streamConfigJson({ ...stream, retentionPolicy: 'infinite' })).toContain(
      '"retention_policy":{"infinite":{}}',
    )
  })

  const basin: BasinConfig = {
    defaultStreamConfig: {},
    streamCipher: null,
    createStreamOnAppend: false,
    createStreamOnRead: true,
  }

  it('has all four members of a basin configuration', () => {
    expect(basinConfigJson(basin)).toBe(
      '{"default_stream_config":{"storage_class":"express","retention_policy":null,"timestamping":null,"delete_on_empty":null},"stream_cipher":null,"create_stream_on_append":false,"create_stream_on_read":true}',
    )
    expect(basinConfigJson({ ...basin, streamCipher: 'aegis-256' })).toContain('"stream_cipher":"aegis-256"')
  })

  it.each<[BasinConfig['defaultStreamConfig'], string]>([
    [
      { timestamping: {}, deleteOnEmpty: {} },
      '{"storage_class":"express","retention_policy":null,"timestamping":null,"delete_on_empty":null}',
    ],
    [
      { storageClass: 'standard' },
      '{"storage_class":"standard","retention_policy":null,"timestamping":null,"delete_on_empty":null}',
    ],
    [
      { deleteOnEmpty: { minAgeSeconds: 0 } },
      '{"storage_class":"express","retention_policy":null,"timestamping":null,"delete_on_empty":{"min_age_secs":0}}',
    ],
    [
      { timestamping: { uncapped: false } },
      '{"storage_class":"express","retention_policy":null,"timestamping":{"mode":null,"uncapped":false},"delete_on_empty":null}',
    ],
    [
      { retentionPolicy: 'infinite', timestamping: { mode: 'arrival' } },
      '{"storage_class":"express","retention_policy":{"infinite":{}},"timestamping":{"mode":"arrival","uncapped":null},"delete_on_empty":null}',
    ],
  ])(
    'includes the explicit members of the default %j, and the storage class that applies',
    (defaultStreamConfig, text) => {
      expect(basinConfigJson({ ...basin, defaultStreamConfig })).toContain(
        `{"default_stream_config":${text},`,
      )
    },
  )

  it('decodes to the same configuration', () => {
    expect(decodeEnsureStream(utf8(streamConfigJson(stream)))).toStrictEqual(stream)
    const full = { ...basin, defaultStreamConfig: { ...stream, retentionPolicy: 'infinite' as const } }
    const { streamCipher: _, ...config } = full
    expect(decodeEnsureBasin(utf8(`{"config":${basinConfigJson(full)}}`)).config).toStrictEqual(config)
  })
})
