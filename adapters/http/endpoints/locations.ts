import { decodeLocation, locationJson, locationsJson } from '../../../src/wire/json-resources.ts'
import { jsonBody } from '../body.ts'
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

export const listLocations: Endpoint = async (_, hw) => jsonReply(locationsJson(await hw.listLocations()))

export const getDefaultLocation: Endpoint = async (_, hw) =>
  jsonReply(locationJson(await hw.defaultLocation()))

export const setDefaultLocation: Endpoint = async (request, hw) => {
  const location = decodeLocation(await jsonBody(request))
  return jsonReply(locationJson(await hw.setDefaultLocation(location)))
}
