import { accessTokenPrefixProblem } from '../../../src/model/access.ts'
import { accessTokenPageJson, decodeAccessToken, issuedTokenJson } from '../../../src/wire/json-access.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonBody } from '../body.ts'
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

export const listAccessTokens: Endpoint = async (request, hw) => {
  const query = decodeListQuery(request.query, accessTokenPrefixProblem)
  return jsonReply(accessTokenPageJson(await hw.listAccessTokens(query)))
}

export const issueAccessToken: Endpoint = async (request, hw) => {
  const token = await hw.issueAccessToken(decodeAccessToken(await jsonBody(request)))
  // The response is the only copy of the token: no cache may store it.
  return jsonReply(issuedTokenJson(token), 201, { 'cache-control': 'no-store' })
}

export const revokeAccessToken: Endpoint = async (request, hw) => {
  await hw.revokeAccessToken(request.tokenId)
  return { status: 204 }
}
