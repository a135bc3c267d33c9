import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { BasinConfig, StreamConfig } from '../../src/model/config.ts'
import type { BasinInfo, StreamInfo } from '../../src/model/info.ts'
import { timeText } from '../../src/wire/json.ts'
import {
  basinConfigJson,
  decodeBasinReconfiguration,
  decodeStreamConfigHeader,
  decodeStreamReconfiguration,
  streamConfigJson,
} from '../../src/wire/json-config.ts'
import {
  BASIN_INFO,
  BASIN_PAGE,
  decodeCreateBasin,
  decodeCreateStream,
  decodeEnsureBasin,
  decodeEnsureStream,
  metricsJson,
  STREAM_INFO,
  STREAM_PAGE,
} from '../../src/wire/json-resources.ts'
import { rejection } from '../model/rejection.ts'
import { titled } from '../support/titled.ts'
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

const basin: BasinInfo = {
  name: 'my-basin',
  location: 'aws:us-east-1',
  state: 'active',
  createdAt: new Date('2026-01-02T03:04:05.678Z'),
  deletedAt: null,
}
const stream: StreamInfo = {
  name: 'a/"b"',
  createdAt: new Date('2026-01-02T03:04:05.000Z'),
  deletedAt: null,
  cipher: null,
}

const BASIN =
  '{"name":"my-basin","scope":"aws:us-east-1","location":"aws:us-east-1","state":"active","created_at":"2026-01-02T03:04:05.678Z","deleted_at":null}'
const STREAM = '{"name":"a/\\"b\\"","created_at":"2026-01-02T03:04:05Z","deleted_at":null,"cipher":null}'

describe('infos', () => {
  it('contain the members of every generation of the API', () => {
    expect(BASIN_INFO.text(basin)).toBe(BASIN)
  })

  it('describe a basin that is being deleted', () => {
    const deletedAt = new Date('2026-01-02T03:04:06.500Z')
    expect(JSON.parse(BASIN_INFO.text({ ...basin, state: 'deleting', deletedAt }))).toMatchObject({
      state: 'deleting',
      deleted_at: '2026-01-02T03:04:06.5Z',
    })
  })

  it('describe a stream', () => {
    expect(STREAM_INFO.text(stream)).toBe(STREAM)
    const deletedAt = new Date('2026-02-03T00:00:00Z')
    expect(JSON.parse(STREAM_INFO.text({ ...stream, cipher: 'aes-256-gcm', deletedAt }))).toMatchObject({
      cipher: 'aes-256-gcm',
      deleted_at: '2026-02-03T00:00:00Z',
    })
  })
})

describe('pages', () => {
  it('are listed with `has_more`', () => {
    expect(BASIN_PAGE.text({ items: [basin], hasMore: true })).toBe(`{"basins":[${BASIN}],"has_more":true}`)
    expect(STREAM_PAGE.text({ items: [stream, stream], hasMore: false })).toBe(
      `{"streams":[${STREAM},${STREAM}],"has_more":false}`,
    )
  })

  it('may be empty', () => {
    expect(BASIN_PAGE.text({ items: [], hasMore: false })).toBe('{"basins":[],"has_more":false}')
    expect(STREAM_PAGE.text({ items: [], hasMore: false })).toBe('{"streams":[],"has_more":false}')
  })
})

it.each([
  ['2026-10-20T10:20:30.000Z', '2026-10-20T10:20:30Z'],
  ['2026-10-20T10:20:00.000Z', '2026-10-20T10:20:00Z'],
  ['2026-10-20T00:00:00.100Z', '2026-10-20T00:00:00.1Z'],
  ['2026-10-20T00:00:00.120Z', '2026-10-20T00:00:00.12Z'],
  ['2026-10-20T00:00:00.001Z', '2026-10-20T00:00:00.001Z'],
  ['2026-10-20T02:00:00+02:00', '2026-10-20T00:00:00Z'],
])('%s is encoded as %s', (date, text) => {
  expect(timeText(new Date(date))).toBe(text)
})

describe('metricsJson', () => {
  it('encodes times in seconds', () => {
    const gauge = {
      kind: 'gauge',
      name: 'metered_size',
      unit: 'bytes',
      values: [[60_000, 7]],
    } as const
    const label = { kind: 'label', name: 'active_basins', values: ['a'] } as const
    expect(JSON.parse(metricsJson([gauge, label]))).toEqual({
      values: [
        { gauge: { name: 'metered_size', unit: 'bytes', values: [[60, 7]] } },
        { label: { name: 'active_basins', values: ['a'] } },
      ],
    })
  })
})

const createBasin = (text: string) => decodeCreateBasin(utf8(text))
const createStream = (text: string) => decodeCreateStream(utf8(text))
const ensureBasin = (text: string) => decodeEnsureBasin(utf8(text))

describe('POST basins', () => {
  it.each([
    ['{"basin":"my-basin"}', { basin: 'my-basin', config: {} }],
    ['{"basin":"my-basin","config":null,"scope":null,"location":null}', { basin: 'my-basin', config: {} }],
    [
      '{"basin":"my-basin","config":{"create_stream_on_read":true},"scope":"aws:us-east-1","location":"aws:eu.x-1"}',
      {
        basin: 'my-basin',
        config: { createStreamOnRead: true },
        scope: 'aws:us-east-1',
        location: 'aws:eu.x-1',
      },
    ],
    [`{"basin":"${'b'.repeat(48)}","what":1}`, { basin: 'b'.repeat(48), config: {} }],
  ])('%s', (text, body) => {
    expect(createBasin(text)).toEqual(body)
  })

  it.each([
    ['no name', '{}', 'missing member `basin`'],
    ['a null name', '{"basin":null}', '`basin` must be a string'],
    ['a short name', '{"basin":"short-b"}', 'basin name should be at least 8 bytes in length'],
    ['a capital', '{"basin":"My-basin"}', 'basin name must begin with a lowercase letter or number'],
  ])('is rejected with %s', (_, text, message) => {
    expect(outcomeOf(() => createBasin(text))).toBe('400 bad_json')
    expect(rejection(() => createBasin(text))?.message).toBe(message)
  })

  it.each([
    ['a body that is null', 'null'],
    ['an empty body', ''],
    ['a config that is an array', '{"basin":"my-basin","config":[]}'],
    ['a scope that is a number', '{"basin":"my-basin","scope":1}'],
    ['an empty location', '{"basin":"my-basin","location":""}'],
    ['a location of 65 characters', `{"basin":"my-basin","location":"${'a'.repeat(65)}"}`],
    ['a location with a space', '{"basin":"my-basin","location":"aws us"}'],
    ['a location beyond ASCII', '{"basin":"my-basin","location":"é"}'],
    ['a location with a line break', '{"basin":"my-basin","location":"aws\\n"}'],
  ])('is rejected with %s', (_, text) => {
    expect(outcomeOf(() => createBasin(text))).toBe('400 bad_json')
  })

  it('reports a wrong shape before an invalid configuration', () => {
    const config = '"config":{"default_stream_config":{"retention_policy":{"age":0}}}'
    expect(outcomeOf(() => createBasin(`{"basin":"my-basin",${config}}`))).toBe('422 invalid')
    expect(outcomeOf(() => createBasin(`{"basin":"b",${config}}`))).toBe('400 bad_json')
    expect(outcomeOf(() => createBasin(`{"basin":"my-basin",${config},"location":1}`))).toBe('400 bad_json')
  })
})

describe('PUT of a basin', () => {
  it.each([undefined, new Uint8Array(), utf8('null'), utf8('{}'), utf8('{"config":null}')])(
    'requests the defaults with %j',
    (body) => {
      expect(decodeEnsureBasin(body)).toEqual({ config: {}, scope: undefined, location: undefined })
    },
  )

  it('accepts a configuration, a scope and a location', () => {
    expect(
      ensureBasin('{"config":{"stream_cipher":"aegis-256"},"scope":"aws:us-east-1","location":"here"}'),
    ).toEqual({
      config: { streamCipher: 'aegis-256' },
      scope: 'aws:us-east-1',
      location: 'here',
    })
  })

  it.each(['[]', '1', '"x"', '{"config":1}', '{"scope":{}}', 'nul'])('is rejected with %s', (text) => {
    expect(outcomeOf(() => ensureBasin(text))).toBe('400 bad_json')
  })
})

describe('POST streams', () => {
  it.each(
    titled<[string, object]>([
      ['{"stream":"s"}', { stream: 's', config: {} }],
      ['{"stream":"a/b \\u0001é","config":null}', { stream: 'a/b \u0001é', config: {} }],
      [
        '{"stream":"s","config":{"storage_class":"standard"}}',
        { stream: 's', config: { storageClass: 'standard' } },
      ],
      [`{"stream":"${'é'.repeat(256)}"}`, { stream: 'é'.repeat(256), config: {} }],
    ]),
  )('%s', (_, text, body) => {
    expect(createStream(text)).toEqual(body)
  })

  it.each([
    ['no name', '{}'],
    ['an empty name', '{"stream":""}'],
    ['a dot', '{"stream":"."}'],
    ['two dots', '{"stream":".."}'],
    ['a name of 513 bytes', `{"stream":"${'é'.repeat(256)}s"}`],
    ['a name with a lone surrogate', '{"stream":"\\ud800"}'],
    ['a body that is null', 'null'],
    ['a config that is a string', '{"stream":"s","config":"x"}'],
  ])('is rejected with %s', (_, text) => {
    expect(outcomeOf(() => createStream(text))).toBe('400 bad_json')
  })

  it('is rejected if its configuration is invalid', () => {
    const text = '{"stream":"s","config":{"retention_policy":{"age":0}}}'
    expect(outcomeOf(() => createStream(text))).toBe('422 invalid')
  })
})

describe('PUT of a stream', () => {
  it.each([undefined, new Uint8Array(), utf8('null'), utf8('{}')])(
    'requests the defaults with %j',
    (body) => {
      expect(decodeEnsureStream(body)).toEqual({})
    },
  )

  it('accepts the configuration itself, not wrapped', () => {
    expect(decodeEnsureStream(utf8('{"storage_class":"standard"}'))).toEqual({ storageClass: 'standard' })
    expect(decodeEnsureStream(utf8('{"config":{"storage_class":"standard"}}'))).toEqual({})
  })
})
