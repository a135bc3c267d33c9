import fc from 'fast-check'
import {
  type AccessScopeInput,
  type AccessTokenInput,
  newAccessToken,
  type ResourceSet,
} from '../../../../src/model/access.ts'
import { HeadwaterError } from '../../../../src/model/errors.ts'
import { OPERATIONS } from '../../../../src/model/operations.ts'
import { accessTokenInfoOf, decodePage } from '../../../../src/wire/decode-resources.ts'
import { dateTimeText } from '../../../../src/wire/json-members.ts'
import {
  accessTokenPageJson,
  decodeAccessToken,
  decodeLocation,
} from '../../../../src/wire/json-resources.ts'
import { MalformedResponse, parseResponse } from '../../../../src/wire/response-json.ts'
import { target } from '../harness/target.ts'
import { basinName, streamName } from '../models.ts'
import { jsonBody } from './json-body.ts'

const NONE = { read: false, write: false }
const END_OF_TIME = Date.UTC(9999, 11, 31)

function set(name: fc.Arbitrary<string>): fc.Arbitrary<ResourceSet | undefined> {
  const one = fc.oneof(name, fc.constant(''))
  return fc.option(
    fc.oneof(
      one.map((exact) => ({ exact })),
      one.map((prefix) => ({ prefix })),
    ),
    { nil: undefined },
  )
}

const group = fc.option(fc.record({ read: fc.boolean(), write: fc.boolean() }), { nil: null })
const scope: fc.Arbitrary<AccessScopeInput> = fc.record({
  basins: set(basinName),
  streams: set(streamName),
  accessTokens: set(basinName),
  opGroups: fc.option(fc.record({ account: group, basin: group, stream: group }), { nil: undefined }),
  ops: fc.option(fc.array(fc.constantFrom(...OPERATIONS), { maxLength: 4 }), { nil: undefined }),
})
const token: fc.Arbitrary<AccessTokenInput> = fc.record({
  id: fc.stringMatching(/^[!-~]{1,20}$/).filter((id) => id !== '.' && id !== '..'),
  expiresAt: fc.option(
    fc.nat(END_OF_TIME).map((time) => new Date(time)),
    { nil: undefined },
  ),
  autoPrefixStreams: fc.option(fc.boolean(), { nil: undefined }),
  scope,
}) as fc.Arbitrary<AccessTokenInput>

const WORDS = [
  ...['"id":', '"expires_at":', '"2030-01-01T00:00:00Z"', '"auto_prefix_streams":', '"scope":', '"basins":'],
  ...[
    '"streams":',
    '"access_tokens":',
    '"op_groups":',
    '"ops":',
    '"exact":',
    '"prefix":',
    '"account":',
    '"read":',
  ],
  ...['"append"', 'null', 'true', '{}', '[]', ',', ':', '}', '{"__proto__":', '"has_more":'],
]

export const accessToken = jsonBody({
  name: 'access-token',
  // The text of the time is kept, because the service returns it as it was given.
  models: token.map((one) =>
    one.expiresAt == null ? one : { ...one, expiresAtText: dateTimeText(one.expiresAt) },
  ),
  form: ({ id, expiresAt, expiresAtText, autoPrefixStreams, scope }: AccessTokenInput) => ({
    id,
    expires_at: expiresAt == null ? null : (expiresAtText ?? dateTimeText(expiresAt)),
    auto_prefix_streams: autoPrefixStreams ?? null,
    scope: {
      basins: scope.basins,
      streams: scope.streams,
      access_tokens: scope.accessTokens,
      op_groups: scope.opGroups,
      ops: scope.ops,
    },
  }),
  decode(body) {
    const input = decodeAccessToken(body)
    issue(input)
    return input
  },
  words: WORDS,
})

/** The model accepts its own output. */
function issue(input: AccessTokenInput): void {
  try {
    const { id, autoPrefixStreams, scope } = newAccessToken(input, 0)
    newAccessToken({ id, autoPrefixStreams, scope }, 0)
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'invalid') throw error
  }
}

/** The response of a server to a list of tokens. */
export const tokenPage = target({
  name: 'token-page',
  models: fc.record({
    items: fc.array(
      fc.record({
        id: streamName,
        expiresAt: fc.option(
          fc.nat(END_OF_TIME).map((time) => new Date(time)),
          { nil: null },
        ),
        autoPrefixStreams: fc.boolean(),
        scope: fc.record({
          basins: fc.constantFrom(null, { exact: 'a' }, { prefix: '' }),
          streams: fc.constantFrom(null, { exact: 'a' }, { prefix: '' }),
          accessTokens: fc.constant(null),
          opGroups: fc.constant({ account: NONE, basin: NONE, stream: NONE }),
          ops: fc.subarray([...OPERATIONS]),
        }),
      }),
      { maxLength: 3 },
    ),
    hasMore: fc.boolean(),
  }),
  encode: accessTokenPageJson,
  decode: (input: string) => decodePage(parseResponse(input), 'access_tokens', accessTokenInfoOf),
  means: (page) => page,
  refuses: (error) => error instanceof MalformedResponse,
  words: WORDS,
})

export const location = jsonBody({
  name: 'location',
  models: fc.stringMatching(/^[A-Za-z0-9:.-]{1,64}$/),
  form: (name: string) => name,
  decode: decodeLocation,
  words: ['"', 'aws:us-east-1', '\\u0041', '{}', 'null'],
})
