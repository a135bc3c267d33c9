import { decodeLocation, locationJson, locationsJson } from '../../../src/wire/json-location.ts'
import { jsonReply } from '../reply.ts'
import { jsonBody } from '../request-body.ts'
import type { Endpoint } from '../router.ts'

/** The endpoints of locations (wire-behaviour.md 1.2 rows 22 to 24). */
export const listLocations: Endpoint = async (context) =>
  jsonReply(locationsJson(await context.hw.listLocations()))

export const getDefaultLocation: Endpoint = async (context) =>
  jsonReply(locationJson(await context.hw.defaultLocation()))

export const setDefaultLocation: Endpoint = async (context) => {
  const location = decodeLocation(await jsonBody(context))
  return jsonReply(locationJson(await context.hw.setDefaultLocation(location)))
}
