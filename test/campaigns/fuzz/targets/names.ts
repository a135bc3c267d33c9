import fc from 'fast-check'
import {
  idOfToken,
  rootTokenProblem,
  TOKEN_CHARACTERS_MAX,
} from '../../../../src/engine/service/tokens/token-format.ts'
import { accessTokenIdProblem, resourceSetProblem } from '../../../../src/model/access.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { basinPrefixProblem, requestTokenProblem } from '../../../../src/model/control-names.ts'
import {
  basinNameProblem,
  fencingTokenProblem,
  locationNameProblem,
  streamNameProblem,
} from '../../../../src/model/names.ts'
import { equal, ok } from '../harness/assertions.ts'
import { nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { basinName, streamName } from '../models.ts'

const HALF_PAIR = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/

/** The rules in another form (docs/protocol.md "Names"). */
function expected(text: string) {
  const bytes = utf8(text).length
  const isWellFormed = !HALF_PAIR.test(text)
  const isFile = text !== '' && text !== '.' && text !== '..' && isWellFormed && !text.includes('\0')
  return {
    basin: bytes >= 1 && bytes <= 48 && /^(?!-)[a-z0-9-]+(?<!-)(?![\s\S])/.test(text),
    longBasin: bytes >= 8 && bytes <= 48 && /^(?!-)[a-z0-9-]+(?<!-)(?![\s\S])/.test(text),
    basinPrefix: bytes <= 48 && /^(?!-)[a-z0-9-]*(?![\s\S])/.test(text),
    stream: isFile && bytes <= 512,
    fencingToken: isWellFormed && bytes <= 36,
    requestToken: isWellFormed && bytes <= 36,
    location: /^[A-Za-z0-9:.-]+(?![\s\S])/.test(text) && text.length <= 64,
    tokenId: isFile && bytes <= 96,
  }
}

export const names = target({
  name: 'names',
  models: fc.oneof(basinName, streamName),
  encode: (name) => name,
  decode: (input: string) => ({
    basin: basinNameProblem(input) === undefined,
    longBasin: basinNameProblem(input, 8) === undefined,
    basinPrefix: basinPrefixProblem(input, 'prefix') === undefined,
    stream: streamNameProblem(input) === undefined,
    fencingToken: fencingTokenProblem(input) === undefined,
    requestToken: requestTokenProblem(input) === undefined,
    location: locationNameProblem(input) === undefined,
    tokenId: accessTokenIdProblem(input) === undefined,
  }),
  means: expected,
  refuses: nothing,
  verify(rules, input) {
    equal(rules, expected(input), 'which rules a name keeps')
    equal(
      resourceSetProblem('streams', { exact: input }) === undefined,
      rules.stream || input === '',
      'a set of one',
    )
  },
  words: ['-', '.', '..', 'a'.repeat(48), 'ü'.repeat(18), '😀', '\ud83d', '\n', 'x'.repeat(512)],
  share: 30,
})

/** The text of an access token: it has an id, or is invalid. */
export const tokenText = target({
  name: 'token-text',
  models: fc.stringMatching(/^[ -~]{1,40}$/).filter((id) => id !== '.' && id !== '..'),
  // Built like an issued token, without random bytes.
  encode: (id) => Buffer.concat([Buffer.alloc(32, 7), utf8(id)]).toString('base64'),
  decode: (input: string) => ({ id: idOfToken(input), isRoot: rootTokenProblem(input) === undefined }),
  means: (id) => ({ id, isRoot: true }),
  refuses: nothing,
  verify({ id, isRoot }, input) {
    if (id !== undefined) equal(accessTokenIdProblem(id), undefined, 'what is wrong with the id')
    if (isRoot) ok(input.length <= TOKEN_CHARACTERS_MAX && !/[^!-~]/.test(input), 'it can be no root token')
  },
  words: ['=', '==', 'AAAA', 'Li4=', 'Lg==', '+', '/', ' ', '\xff'],
})
