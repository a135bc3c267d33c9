import { basinPrefixProblem } from '../../../src/model/names.ts'
import { decodeBasinReconfiguration } from '../../../src/wire/json-config-change.ts'
import { basinConfigJson } from '../../../src/wire/json-config-output.ts'
import { basinInfoJson, basinPageJson } from '../../../src/wire/json-info.ts'
import { decodeCreateBasin, decodeEnsureBasin } from '../../../src/wire/json-provision.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonReply } from '../reply.ts'
import { jsonBody, optionalBody } from '../request-body.ts'
import { requestToken } from '../request-token.ts'
import type { Endpoint } from '../router.ts'
import { provisionedReply } from './provisioned.ts'

/** The endpoints of basins (wire-behaviour.md 1.2 rows 1 to 6, 8). */
export const listBasins: Endpoint = async (context) => {
  const query = decodeListQuery(context.search, basinPrefixProblem)
  return jsonReply(basinPageJson(await context.hw.listBasins(query)))
}

export const createBasin: Endpoint = async (context) => {
  const token = requestToken(context)
  const { basin, config, scope, location } = decodeCreateBasin(await jsonBody(context))
  const provisioned = await context.hw.createBasin(basin, config, { requestToken: token, scope, location })
  return provisionedReply(context, provisioned, basinInfoJson, provisioned.result === 'created' ? 201 : 200)
}

/** Being idempotent, it needs a request token for nothing, but refuses one that is none (rulings.md "Basins"). */
export const ensureBasin: Endpoint = async (context) => {
  requestToken(context)
  const basin = context.pathParameter('basin')
  const { config, scope, location } = decodeEnsureBasin(await optionalBody(context))
  const provisioned = await context.hw.ensureBasin(basin, config, { scope, location })
  return provisionedReply(context, provisioned, basinInfoJson, provisioned.result === 'created' ? 201 : 200)
}

export const getBasinConfig: Endpoint = async (context) =>
  jsonReply(basinConfigJson(await context.hw.basinConfig(context.pathParameter('basin'))))

export const reconfigureBasin: Endpoint = async (context) => {
  const basin = context.pathParameter('basin')
  const change = decodeBasinReconfiguration(await jsonBody(context))
  return jsonReply(basinConfigJson(await context.hw.reconfigureBasin(basin, change)))
}

export const deleteBasin: Endpoint = async (context) => {
  await context.hw.deleteBasin(context.pathParameter('basin'))
  return { status: 202 }
}
