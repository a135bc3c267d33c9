import { HeadwaterError } from '../../src/index.ts'
import { objectOf, required, stringOf } from '../../src/wire/json-members.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import { badJson } from '../../src/wire/json-values.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { CliContext } from './cli-context.ts'
import { askService, strangeAnswer } from './service-request.ts'
import { decodeTokenPage } from './token-page.ts'
import type { ServicePlace } from './token-place.ts'

const PATH = '/v1/access-tokens'

/** The access tokens of a service (wire-behaviour.md 9). */
export function remoteTokens(
  place: ServicePlace,
  context: Pick<CliContext, 'fetch' | 'clock'>,
): AccessTokens {
  const decode = <Value>(body: Uint8Array, decoder: (body: Uint8Array) => Value): Value => {
    try {
      return decoder(body)
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      throw strangeAnswer(place.url, 'its answer is none to this question')
    }
  }
  return {
    async issue({ body }) {
      const answer = await askService(place, { method: 'POST', path: PATH, body }, context)
      return decode(answer, decodeIssuedToken)
    },
    async list({ prefix, startAfter }) {
      const query = new URLSearchParams({ prefix, start_after: startAfter })
      return decode(
        await askService(place, { method: 'GET', path: `${PATH}?${query}` }, context),
        decodeTokenPage,
      )
    },
    async revoke(id) {
      await askService(place, { method: 'DELETE', path: `${PATH}/${encodeURIComponent(id)}` }, context)
    },
  }
}

function decodeIssuedToken(body: Uint8Array): string {
  const token = required(objectOf(readJson(body), 'body'), 'access_token', stringOf)
  if (!/^[!-~]+$/.test(token)) throw badJson('a token is visible ASCII', 'access_token')
  return token
}
