import fc from 'fast-check'
import type { RequestExchange } from '../../../../adapters/http/exchange.ts'
import { bearerToken, handlerSettings } from '../../../../adapters/http/options.ts'
import { ApiRequest } from '../../../../adapters/http/request.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { contentCodingOf, responseCodingOf } from '../../../../src/wire/compression.ts'
import {
  HEADER_PREFIXES,
  mediaKind,
  mediaTypeEssence,
  readForm,
  requireJson,
} from '../../../../src/wire/media-type.ts'
import { sessionCompressionOf } from '../../../../src/wire/session-frames.ts'
import { headerPrefixOf, parseDataFormat, usedHeaderPrefix } from '../../../../src/wire/vendor-headers.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError, nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { text } from '../models.ts'

const SETTINGS = handlerSettings({})
const TYPES = [
  ...['application/json', 'application/problem+json', 'application/protobuf', 'application/x-protobuf'],
  ...['text/event-stream', 'text/plain', 'svcs/proto', 's2s/proto', '*/*'],
]

export const mediaTypes = target({
  name: 'media-types',
  models: fc.tuple(
    fc.constantFrom(...TYPES),
    fc.constantFrom('', '; charset=utf-8', ', text/plain', ';q=0', ' '),
  ),
  encode: (parts) => parts.join(''),
  decode: (input: string) => ({
    essence: mediaTypeEssence(input),
    kind: mediaKind(input),
    form: readForm(input, input),
  }),
  means: ([type]) => ({
    essence: type,
    kind: mediaKind(type),
    form: readForm(type, type),
  }),
  refuses: nothing,
  verify({ essence, kind }, input) {
    ok((essence === undefined) === (kind === undefined), 'a kind of no type')
    if (essence === undefined) return
    ok(/^[^\s/]+\/[^\s/]+$/.test(essence) && essence === essence.toLowerCase(), 'it is no type and subtype')
    ok(input.trimStart().toLowerCase().startsWith(essence), 'the type is not what the header begins with')
    equal(mediaKind(essence), kind, 'the kind without parameters')
  },
  words: [...TYPES, ';', ',', '/', '+json', '\t', 'q=0'],
  share: 15,
})

/** A JSON body, by its content type. */
export const jsonBodies = target({
  name: 'json-bodies',
  models: fc.constantFrom('application/json', 'Application/JSON', 'application/json;a=b'),
  encode: (type) => type,
  decode: (input: string) => requireJson(input),
  refuses: headwaterError('bad_json'),
  words: TYPES,
  share: 5,
})

export const codings = target({
  name: 'codings',
  models: fc.array(fc.constantFrom('gzip', 'zstd;q=0.5', 'gzip;q=0', 'br', 'identity', '*'), {
    maxLength: 4,
  }),
  encode: (items) => items.join(', '),
  decode: (input: string) => ({
    body: contentCodingOf(input),
    session: sessionCompressionOf(input),
    response: responseCodingOf(input),
  }),
  refuses: nothing,
  verify({ body, session, response }, input) {
    const named = input.toLowerCase()
    if (body === 'gzip' || body === 'zstd') ok(named.includes(body), 'a coding that is not named')
    if (session !== undefined) ok(named.includes(session), 'a compression that is not named')
    if (response !== undefined) ok(named.includes(response), 'a response coding that is not named')
  },
  words: ['gzip', 'x-gzip', 'zstd', 'GZIP', ';q=', '0.001', '1e-9', ',', ';', '*'],
})

export const dataFormat = target({
  name: 'data-format',
  models: fc.constantFrom('raw', 'json', 'base64', 'json-binsafe', ' raw '),
  encode: (value) => value,
  decode: (input: string) => parseDataFormat(input),
  refuses: headwaterError('bad_header'),
  verify: (format) => ok(format === 'raw' || format === 'base64', 'it is no format'),
  share: 3,
})

export const authorization = target({
  name: 'authorization',
  models: fc.stringMatching(/^[!-~]{1,60}$/),
  encode: (token) => `Bearer ${token}`,
  decode: (input: string) => bearerToken(exchangeWith(new Map([['authorization', input]]))),
  means: (token) => token,
  refuses: nothing,
  verify(token, input) {
    ok(
      token === undefined || (/^[!-~]+$/.test(token) && input.includes(token)),
      'it is no token of the header',
    )
  },
  words: ['Bearer ', 'bearer', 'Basic ', ' ', '\t', 'Bearer Bearer '],
})

/** Bytes beyond ASCII as `Headers` returns them, one character each. */
export const vendorHeaders = target({
  name: 'vendor-headers',
  models: fc.tuple(fc.constantFrom(...HEADER_PREFIXES), text),
  encode: ([word, value]) => `${word}-basin: ${Buffer.from(utf8(value)).toString('latin1')}`,
  decode(input: string) {
    const values = valuesOf(input)
    const exchange = exchangeWith(values)
    const match = { pattern: '', target: undefined, parameters: {} }
    return {
      basin: new ApiRequest(exchange, match, SETTINGS).vendorHeader('basin'),
      word: headerPrefixOf(exchange, HEADER_PREFIXES),
      used: usedHeaderPrefix(exchange, HEADER_PREFIXES),
    }
  },
  means: ([word, basin]) => ({ basin, word, used: word }),
  refuses: headwaterError('bad_header'),
  verify({ word, used }) {
    ok(HEADER_PREFIXES.includes(word), 'it is no word')
    equal(used ?? word, word, 'the word that was used')
  },
  words: [
    '\nsvc-basin: ',
    '\ns2-basin: ',
    '\ns2-format: ',
    '\ncontent-type: s2s/proto',
    '\xc3\xa9',
    '\xed\xa0',
    '\n',
  ],
})

/** Header values by name. */
function valuesOf(lines: string): Map<string, string> {
  return new Map(
    lines.split('\n').map((line) => {
      const [, name = '', value = ''] = /^([^:]*): ?(.*)$/s.exec(line) ?? []
      return [name.toLowerCase(), value]
    }),
  )
}

function exchangeWith(values: ReadonlyMap<string, string>): RequestExchange {
  return { header: (name: string) => values.get(name) } as RequestExchange
}
