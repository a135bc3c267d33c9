import { describe, expect, it } from 'vitest'
import { mediaKind, readForm, requireJson } from '../../src/wire/media-type.ts'
import { rejection } from '../model/rejection.ts'
import { outcomeOf } from './outcome.ts'

describe('mediaKind', () => {
  it.each([
    ['application/json', 'json'],
    ['application/json; charset=utf-8', 'json'],
    ['APPLICATION/JSON', 'json'],
    ['  application/json  ', 'json'],
    ['application/json;profile="a,b"', 'json'],
    ['application/problem+json', 'json'],
    ['application/vnd.api+JSON; x=y', 'json'],
    ['application/json, text/event-stream', 'json'],
    ['text/json', 'other'],
    ['application/jsonp', 'other'],
    ['application/+json', 'other'],
    ['application/protobuf', 'protobuf'],
    ['application/x-protobuf', 'protobuf'],
    ['Application/Protobuf;q=0.1', 'protobuf'],
    ['application/protobuf+json', 'json'],
    ['svcs/proto', 'session'],
    ['s2s/proto', 'session'],
    ['S2S/PROTO; v=2', 'session'],
    ['acmes/proto', 'other'],
    ['text/event-stream', 'event-stream'],
    ['text/event-stream;q=0, application/json', 'event-stream'],
    ['*/*', 'other'],
    ['text/html, application/json', 'other'],
    [null, undefined],
    [undefined, undefined],
    ['', undefined],
    ['json', undefined],
    ['application/', undefined],
    ['/json', undefined],
    ['application/json x', undefined],
    ['application json/x', undefined],
    [', application/json', undefined],
  ])('%j is %s', (header, kind) => {
    expect(mediaKind(header)).toBe(kind)
  })

  it('takes linear time on a long header', () => {
    expect(mediaKind('a'.repeat(1_000_000))).toBeUndefined()
    expect(mediaKind(`${'a/'.repeat(500_000)}`)).toBeUndefined()
  })
})

describe('readForm', () => {
  it.each([
    [null, null, 'json'],
    [null, '*/*', 'json'],
    [null, 'image/png', 'json'],
    [null, 'nonsense', 'json'],
    [null, 'application/json, text/event-stream', 'json'],
    [null, 'text/event-stream', 'event-stream'],
    [null, 'application/protobuf', 'protobuf'],
    ['application/json', 'application/protobuf', 'protobuf'],
    ['application/protobuf', null, 'json'],
    ['svcs/proto', 'text/event-stream', 'session'],
    ['s2s/proto', 'application/protobuf', 'session'],
    [null, 'svcs/proto', 'json'],
  ])('Content-Type %j and Accept %j: %s', (contentType, accept, form) => {
    expect(readForm(contentType, accept)).toBe(form)
  })
})

describe('requireJson', () => {
  it.each(['application/json', 'application/merge-patch+json'])('accepts %s', (contentType) => {
    expect(outcomeOf(() => requireJson(contentType))).toBe('accepted')
  })

  it.each([null, 'text/plain', 'application/protobuf', 'nonsense'])('rejects %j', (contentType) => {
    expect(outcomeOf(() => requireJson(contentType))).toBe('400 bad_json')
    expect(rejection(() => requireJson(contentType))?.message).toBe(
      'Expected request with `Content-Type: application/json`',
    )
  })
})
