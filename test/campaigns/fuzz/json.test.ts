import fc from 'fast-check'
import { expect } from 'vitest'
import {
  type AccessScopeInput,
  type AccessTokenInput,
  newAccessToken,
  OPERATIONS,
  type ResourceSet,
} from '../../../src/model/access.ts'
import type { RecordInput } from '../../../src/model/append-input.ts'
import { encodeBase64, utf8 } from '../../../src/model/bytes.ts'
import type { BasinReconfiguration, StreamReconfiguration } from '../../../src/model/config.ts'
import type { DataFormat } from '../../../src/wire/headers.ts'
import { timeText } from '../../../src/wire/json.ts'
import {
  decodeBasinReconfiguration,
  decodeStreamConfigHeader,
  decodeStreamReconfiguration,
} from '../../../src/wire/json-config.ts'
import { decodeAppendJson } from '../../../src/wire/json-records.ts'
import {
  decodeAccessToken,
  decodeCreateBasin,
  decodeCreateStream,
  decodeEnsureStream,
  decodeLocation,
} from '../../../src/wire/json-resources.ts'
import { basinConfig, basinForm, streamConfig, streamForm } from './configs.ts'
import { fuzzText } from './decoder.ts'
import {
  basinName,
  bytes,
  fencingToken,
  integer,
  optional,
  partial,
  streamName,
  text,
  time,
} from './models.ts'
import { checkBatch, outcomeOf, withCode } from './outcomes.ts'

interface Body<Value> {
  readonly models: fc.Arbitrary<Value>
  /** The JSON of the value, without undefined members. */
  readonly form: (value: Value) => unknown
  readonly decode: (body: Uint8Array) => Value
  readonly words: string
  verify?(value: Value): void
}

/** The largest number of a request is decoded as an infinite one. */
const INFINITE = '\0infinite'

/** A body of a request. What is decoded, encoded again, is decoded as the same. */
function fuzzBody<Value>(name: string, { models, form, decode, words, verify }: Body<Value>): void {
  const encode = (value: Value) =>
    JSON.stringify(form(value), (_, member) =>
      member === Number.POSITIVE_INFINITY ? INFINITE : member,
    ).replaceAll(JSON.stringify(INFINITE), '18446744073709551615')
  fuzzText(name, {
    models,
    encode,
    decode: (input) => decode(utf8(input)),
    means: (value) => value,
    rejects: withCode('bad_json', 'invalid'),
    verify(value) {
      expect(decode(utf8(encode(value))), 'the value, encoded again').toEqual(value)
      verify?.(value)
    },
    words: [...words.split(' '), ...'null true {} [] , : [ ] } {"__proto__":'.split(' ')],
  })
}

function fuzzAppend<Content extends string | Uint8Array>(
  format: DataFormat,
  content: fc.Arbitrary<Content>,
  textOf: (content: Content) => string,
): void {
  const record = fc.record({
    timestamp: optional(integer),
    headers: fc.array(fc.tuple(content, content), { maxLength: 3 }),
    body: content,
  })
  const formOf = (input: RecordInput) => {
    const { timestamp, headers = [], body = '' } = input as Exclude<RecordInput, string | Uint8Array>
    return {
      timestamp,
      headers: headers.map((header) => header.map((part) => textOf(part as Content))),
      body: textOf(body as Content),
    }
  }
  fuzzBody(`an append in JSON with the data format ${format}`, {
    models: fc.record({
      inputs: fc.array(record, { maxLength: 4 }),
      conditions: fc.record({ matchSeqNum: optional(integer), fencingToken: optional(fencingToken) }),
    }),
    form: ({ inputs, conditions }) => ({
      records: inputs.map(formOf),
      match_seq_num: conditions.matchSeqNum,
      fencing_token: conditions.fencingToken,
    }),
    decode: (body) => decodeAppendJson(body, format) as never,
    words: '"records": "body": "headers": "timestamp": "match_seq_num": ["",""] ["","trim"] [["a","b"]],',
    verify: checkBatch,
  })
}

fuzzAppend('raw', text, (content) => content)
fuzzAppend('base64', bytes, encodeBase64)

const CONFIG_WORDS =
  '"storage_class": "retention_policy": "timestamping": "delete_on_empty": "min_age_secs": "mode": "age": ' +
  '"default_stream_config": "stream_cipher": "create_stream_on_append": "uncapped": "infinite":{}'
const BASIN_WORDS = `"basin": "config": "scope": "location": "aws:us-east-1" ${CONFIG_WORDS}`
const place = {
  scope: optional(text),
  location: optional(fc.stringMatching(/^[A-Za-z0-9:.-]{1,10}$/)),
}

fuzzBody('the creation of a basin', {
  models: fc.record({ basin: basinName, config: basinConfig, ...place }),
  form: ({ config, ...more }) => ({ config: basinForm(config), ...more }),
  decode: decodeCreateBasin,
  words: BASIN_WORDS,
})

fuzzBody('the creation of a stream', {
  models: fc.record({ stream: streamName, config: streamConfig }),
  form: ({ stream, config }) => ({ stream, config: streamForm(config) }),
  decode: decodeCreateStream,
  words: `"stream": "config": ${CONFIG_WORDS}`,
})

fuzzBody('a stream that is created or reconfigured', {
  models: streamConfig,
  form: streamForm,
  decode: decodeEnsureStream,
  words: CONFIG_WORDS,
})

fuzzText('the configuration of a stream in a header', {
  models: streamConfig,
  encode: (config) => JSON.stringify(streamForm(config)),
  decode: decodeStreamConfigHeader,
  means: (config) => config,
  rejects: withCode('bad_header', 'invalid'),
  words: CONFIG_WORDS.split(' '),
})

function clearable<Value>(value: fc.Arbitrary<Value>): fc.Arbitrary<Value | null> {
  return fc.option(value, { nil: null })
}

const streamChange = partial({
  storageClass: clearable(fc.constantFrom('standard', 'express')),
  retentionPolicy: clearable(
    fc.oneof(fc.constant('infinite' as const), fc.record({ ageSeconds: fc.integer({ min: 1 }) })),
  ),
  timestamping: clearable(
    partial({
      mode: clearable(fc.constantFrom('client-prefer', 'client-require', 'arrival')),
      uncapped: clearable(fc.boolean()),
    }),
  ),
  deleteOnEmpty: clearable(partial({ minAgeSeconds: clearable(integer) })),
}) as fc.Arbitrary<StreamReconfiguration>

fuzzBody('a change of the configuration of a stream', {
  models: streamChange,
  form: streamForm,
  decode: decodeStreamReconfiguration,
  words: CONFIG_WORDS,
})

fuzzBody('a change of the configuration of a basin', {
  models: partial({
    defaultStreamConfig: clearable(streamChange),
    streamCipher: clearable(fc.constantFrom('aegis-256', 'aes-256-gcm')),
    createStreamOnAppend: fc.boolean(),
    createStreamOnRead: fc.boolean(),
  }) as fc.Arbitrary<BasinReconfiguration>,
  form: basinForm,
  decode: decodeBasinReconfiguration,
  words: CONFIG_WORDS,
})

function setOf(name: fc.Arbitrary<string>): fc.Arbitrary<ResourceSet | undefined> {
  const one = fc.oneof(name, fc.constant(''))
  return optional(fc.oneof(fc.record({ exact: one }), fc.record({ prefix: one })))
}

const group = optional(fc.record({ read: fc.boolean(), write: fc.boolean() }))
const scope: fc.Arbitrary<AccessScopeInput> = fc.record({
  basins: setOf(basinName),
  streams: setOf(streamName),
  accessTokens: setOf(basinName),
  opGroups: optional(fc.record({ account: group, basin: group, stream: group })),
  ops: optional(fc.array(fc.constantFrom(...OPERATIONS), { maxLength: 4 })),
})

fuzzBody<AccessTokenInput>('an access token', {
  // The text of the time is kept, because the service returns it as it was given.
  models: fc
    .record({
      id: fc.stringMatching(/^[!-~]{1,20}$/).filter((id) => id !== '.' && id !== '..'),
      expiry: fc.oneof(
        time.map((expiresAt) => ({ expiresAt, expiresAtText: timeText(expiresAt) })),
        fc.constant({}),
      ),
      autoPrefixStreams: optional(fc.boolean()),
      scope,
    })
    .map(({ expiry, ...token }) => ({ ...token, ...expiry })),
  form: ({ id, expiresAt, expiresAtText, autoPrefixStreams, scope }) => ({
    id,
    expires_at: expiresAt == null ? null : (expiresAtText ?? timeText(expiresAt)),
    auto_prefix_streams: autoPrefixStreams ?? null,
    scope: {
      basins: scope.basins,
      streams: scope.streams,
      access_tokens: scope.accessTokens,
      op_groups: scope.opGroups,
      ops: scope.ops,
    },
  }),
  decode: decodeAccessToken,
  words:
    '"id": "expires_at": "2030-01-01T00:00:00Z" "auto_prefix_streams": "scope": "basins": "streams": "access_tokens": ' +
    '"op_groups": "ops": "exact": "prefix": "account": "read": "append"',
  /** The model accepts what it has made of a token. */
  verify(input) {
    const issued = outcomeOf(() => newAccessToken(input))
    if ('error' in issued) expect(issued.error).toSatisfy(withCode('invalid'))
    else {
      const { id, autoPrefixStreams, scope } = issued.value
      newAccessToken({ id, autoPrefixStreams, scope })
    }
  },
})

fuzzBody('the location of a basin', {
  models: fc.stringMatching(/^[A-Za-z0-9:.-]{1,64}$/),
  form: (name) => name,
  decode: decodeLocation,
  words: '" aws:us-east-1 \\u0041',
})
