import { accessTokenPrefixProblem } from '../../../src/model/access.ts'
import type { NameRole } from '../../../src/model/names.ts'
import { accessTokenPageJson, decodeAccessToken, issuedTokenJson } from '../../../src/wire/json-access.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonReply } from '../reply.ts'
import { jsonBody } from '../request-body.ts'
import type { Endpoint } from '../router.ts'

/** The endpoints of access tokens (wire-behaviour.md 1.2 rows 16 to 18, 9). */
export const listAccessTokens: Endpoint = async (context) => {
  const query = decodeListQuery(context.search, (text, role: NameRole) =>
    accessTokenPrefixProblem(text, role),
  )
  return jsonReply(accessTokenPageJson(await context.hw.listAccessTokens(query)))
}

export const issueAccessToken: Endpoint = async (context) => {
  const token = await context.hw.issueAccessToken(decodeAccessToken(await jsonBody(context)))
  // Nobody on the way is to keep it.
  return jsonReply(issuedTokenJson(token), 201, { 'cache-control': 'no-store' })
}

export const revokeAccessToken: Endpoint = async (context) => {
  await context.hw.revokeAccessToken(context.pathParameter('id'))
  return { status: 204 }
}
