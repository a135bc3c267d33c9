import fc from 'fast-check'
import { expect } from 'vitest'
import { printable, quoteArg } from '../../../adapters/cli/errors.ts'
import { idOfToken, rootTokenProblem, TOKEN_CHARACTERS_MAX } from '../../../src/engine/access/tokens.ts'
import { accessTokenIdProblem, resourceSetProblem } from '../../../src/model/access.ts'
import { decodeBase64, encodeBase64, utf8 } from '../../../src/model/bytes.ts'
import { EncryptionKey } from '../../../src/model/encryption-key.ts'
import {
  basinNameProblem,
  basinPrefixProblem,
  fencingTokenProblem,
  locationNameProblem,
  requestTokenProblem,
  streamNameProblem,
} from '../../../src/model/names.ts'
import { timeOf, timeText } from '../../../src/wire/json.ts'
import { asInBrowser } from '../../model/as-in-browser.ts'
import { fuzzText } from './decoder.ts'
import { basinName, bytes, streamName, text } from './models.ts'
import { withCode } from './outcomes.ts'

/** Padded, with unused bits set to zero. */
const STRICT_BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$/

const BASE64_WORDS = ['=', '==', 'AA', 'AA==', 'AAA=', '+', '/', '-', '_', ' ', '\n', 'é', '\u0141', 'QR==']

fuzzText('base64', {
  models: bytes,
  encode: encodeBase64,
  decode: (input) => [decodeBase64(input), asInBrowser(() => decodeBase64(input))],
  means: (content) => [content, content],
  verify([content, portably], input) {
    expect(portably, 'what the portable codec decodes').toEqual(content)
    expect(content !== undefined).toBe(STRICT_BASE64.test(input))
    if (content !== undefined) expect(encodeBase64(content)).toBe(input)
  },
  words: BASE64_WORDS,
})

fuzzText('an encryption key', {
  models: fc.uint8Array({ minLength: 32, maxLength: 32 }),
  encode: encodeBase64,
  decode: (input) => new EncryptionKey(input).bytes,
  means: (key) => key,
  rejects: withCode('encryption_key_invalid'),
  verify(key, input) {
    expect(key).toHaveLength(32)
    expect(encodeBase64(key)).toBe(input.trim())
  },
  words: BASE64_WORDS,
})

const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** The rules in another form (docs/protocol.md "Names"). */
function rulesOf(name: string) {
  const length = utf8(name).length
  const isWellFormed = !HALF_PAIR.test(name)
  const isFile = name !== '' && name !== '.' && name !== '..' && isWellFormed && !name.includes('\0')
  const isBasin = length <= 48 && /^(?!-)[a-z0-9-]+(?<!-)(?![\s\S])/.test(name)
  return {
    basin: isBasin,
    longBasin: isBasin && length >= 8,
    basinPrefix: length <= 48 && /^(?!-)[a-z0-9-]*(?![\s\S])/.test(name),
    stream: isFile && length <= 512,
    oneStream: name === '' || (isFile && length <= 512),
    fencingToken: isWellFormed && length <= 36,
    requestToken: isWellFormed && length <= 36,
    location: length <= 64 && /^[A-Za-z0-9:.-]+(?![\s\S])/.test(name),
    tokenId: isFile && length <= 96,
  }
}

fuzzText('names', {
  models: fc.oneof(basinName, streamName),
  encode: (name) => name,
  decode: (input) => ({
    basin: basinNameProblem(input) === undefined,
    longBasin: basinNameProblem(input, 8) === undefined,
    basinPrefix: basinPrefixProblem(input, 'prefix') === undefined,
    stream: streamNameProblem(input) === undefined,
    oneStream: resourceSetProblem('streams', { exact: input }) === undefined,
    fencingToken: fencingTokenProblem(input) === undefined,
    requestToken: requestTokenProblem(input) === undefined,
    location: locationNameProblem(input) === undefined,
    tokenId: accessTokenIdProblem(input) === undefined,
  }),
  verify: (rules, input) => expect(rules).toEqual(rulesOf(input)),
  words: ['-', '.', '..', 'a'.repeat(48), 'ü'.repeat(18), '😀', '\ud83d', '\n', 'x'.repeat(512)],
})

fuzzText('the text of an access token', {
  models: fc.stringMatching(/^[ -~]{1,40}$/).filter((id) => id !== '.' && id !== '..'),
  // Built like an issued token, without random bytes.
  encode: (id) => Buffer.concat([Buffer.alloc(32, 7), utf8(id)]).toString('base64'),
  decode: (input) => ({ id: idOfToken(input), isRoot: rootTokenProblem(input) === undefined }),
  means: (id) => ({ id, isRoot: true }),
  verify({ id, isRoot }, input) {
    if (id !== undefined) expect(accessTokenIdProblem(id)).toBeUndefined()
    if (isRoot)
      expect(input).toSatisfy((token) => token.length <= TOKEN_CHARACTERS_MAX && !/[^!-~]/.test(token))
  },
  words: ['=', '==', 'AAAA', 'Li4=', 'Lg==', '+', '/', ' ', '\xff'],
})

const END_OF_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

fuzzText('dates with times', {
  models: fc
    .oneof(
      fc.integer({ min: -62_167_219_200_000, max: END_OF_TIME }),
      fc.constantFrom(0, END_OF_TIME, Date.UTC(2024, 1, 29)),
    )
    .map((ms) => new Date(ms)),
  encode: timeText,
  decode: (input) => timeOf(input, 'expires_at'),
  means: (date) => date,
  rejects: withCode('bad_json'),
  verify(date, input) {
    expect(timeOf(timeText(date), 'again')).toEqual(date)
    // The platform rejects leap seconds, a space instead of the T, small letters, and long fractions.
    if (/:60|\.\d{4}|^.{10} /.test(input)) return
    const expected = Date.parse(input)
    if (!Number.isNaN(expected)) expect(date.getTime()).toBe(expected)
    else expect(input).toMatch(/[tz]/)
  },
  words: 'T t Z z +00:00 -23:59 .999999999 .1 :60 02-29 0000 9999 24:00:00'.split(' '),
})

fuzzText('untrusted text that is printed on a terminal', {
  models: text,
  encode: (of) => of,
  decode: (input) => [printable(input), quoteArg(input)],
  verify(printed) {
    // A terminal would obey these.
    for (const line of printed) expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  },
  words: ['\x1b[2J', '\u009b', '\u202e', '\u2066', '\u{e0001}', '\r', '\u00ad'],
})
