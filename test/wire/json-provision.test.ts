import { describe, expect, it } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import {
  decodeCreateBasin,
  decodeCreateStream,
  decodeEnsureBasin,
  decodeEnsureStream,
} from '../../src/wire/json-resources.ts'
import { rejection } from '../model/rejection.ts'
import { titled } from '../support/titled.ts'
import { outcomeOf } from './outcome.ts'

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
    ['a long name', `{"basin":"${'b'.repeat(49)}"}`, 'basin name must not exceed 48 bytes in length'],
    ['a capital', '{"basin":"My-basin"}', 'basin name must begin with a lowercase letter or number'],
    ['a hyphen at the end', '{"basin":"my-basin-"}', 'basin name must end with a lowercase letter or number'],
    ['a dot', '{"basin":"my.basin"}', 'basin name must comprise lowercase letters, numbers, and hyphens'],
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
