import { basinPrefixProblem } from '../../../src/model/control-names.ts'
import { basinConfigJson, decodeBasinReconfiguration } from '../../../src/wire/json-config.ts'
import {
  basinInfoJson,
  basinPageJson,
  decodeCreateBasin,
  decodeEnsureBasin,
  decodeLocation,
  locationJson,
  locationsJson,
} from '../../../src/wire/json-resources.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonBody, optionalBody } from '../body.ts'
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

export const listBasins: Endpoint = async (request, hw) => {
  const query = decodeListQuery(request.query, basinPrefixProblem)
  return jsonReply(basinPageJson(await hw.listBasins(query)))
}

export const createBasin: Endpoint = async (request, hw) => {
  const { requestToken } = request
  const { basin, config, scope, location } = decodeCreateBasin(await jsonBody(request))
  const { result, info } = await hw.createBasin(basin, config, { requestToken, scope, location })
  return jsonReply(basinInfoJson(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

export const ensureBasin: Endpoint = async (request, hw) => {
  // The call is idempotent and ignores a request token, but an invalid one is an error.
  const { requestToken: _ } = request
  const { basin } = request
  const { config, scope, location } = decodeEnsureBasin(await optionalBody(request))
  const { result, info } = await hw.ensureBasin(basin, config, { scope, location })
  return jsonReply(basinInfoJson(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

export const getBasinConfig: Endpoint = async (request, hw) =>
  jsonReply(basinConfigJson(await hw.basin(request.basin).storedConfig()))

export const reconfigureBasin: Endpoint = async (request, hw) => {
  const { basin } = request
  const change = decodeBasinReconfiguration(await jsonBody(request))
  return jsonReply(basinConfigJson(await hw.basin(basin).reconfigureStored(change)))
}

export const deleteBasin: Endpoint = async (request, hw) => {
  await hw.basin(request.basin).delete()
  return { status: 202 }
}

export const listLocations: Endpoint = async (_, hw) => jsonReply(locationsJson(await hw.listLocations()))

export const getDefaultLocation: Endpoint = async (_, hw) =>
  jsonReply(locationJson(await hw.defaultLocation()))

export const setDefaultLocation: Endpoint = async (request, hw) => {
  const location = decodeLocation(await jsonBody(request))
  return jsonReply(locationJson(await hw.setDefaultLocation(location)))
}
