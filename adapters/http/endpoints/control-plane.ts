import type { Engine, EngineBasin } from '../../../src/index.ts'
import { accessTokenPrefixProblem } from '../../../src/model/access.ts'
import { invalid } from '../../../src/model/errors.ts'
import { LOCATION } from '../../../src/model/info.ts'
import { basinPrefixProblem, streamPrefixProblem } from '../../../src/model/names.ts'
import {
  basinConfigJson,
  decodeBasinReconfiguration,
  decodeStreamReconfiguration,
  streamConfigJson,
} from '../../../src/wire/json-config.ts'
import {
  ACCESS_TOKEN_PAGE,
  BASIN_INFO,
  BASIN_PAGE,
  decodeAccessToken,
  decodeCreateBasin,
  decodeCreateStream,
  decodeEnsureBasin,
  decodeEnsureStream,
  decodeLocation,
  ISSUED_TOKEN,
  LOCATION_INFO,
  locationsJson,
  STREAM_INFO,
  STREAM_PAGE,
} from '../../../src/wire/json-resources.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonBody, optionalBody } from '../body.ts'
import { jsonReply } from '../reply.ts'
import { type ApiRequest, type Endpoint, type Methods, permitted } from '../request.ts'
import type { Route } from '../router.ts'

const listBasins: Endpoint = async (request, hw) => {
  const query = decodeListQuery(request.query, basinPrefixProblem)
  return jsonReply(BASIN_PAGE.text(await hw.listBasins(query)))
}

const createBasin: Endpoint = async (request, hw) => {
  const { requestToken } = request
  const { basin, config, ...placement } = decodeCreateBasin(await jsonBody(request))
  assertPlacement(placement)
  const { result, info } = await hw.createBasin(basin, config, { requestToken })
  return jsonReply(BASIN_INFO.text(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

const ensureBasin: Endpoint = async (request, hw) => {
  // The call is idempotent and ignores a request token, but an invalid one is an error.
  const { requestToken: _ } = request
  const { basin } = request
  const { config, ...placement } = decodeEnsureBasin(await optionalBody(request))
  assertPlacement(placement)
  const { result, info } = await hw.ensureBasin(basin, config)
  return jsonReply(BASIN_INFO.text(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

/** Throws `invalid` for a location other than the one that there is, under either of its names. */
function assertPlacement(placement: Pick<ReturnType<typeof decodeEnsureBasin>, 'scope' | 'location'>): void {
  for (const [field, name] of Object.entries(placement)) {
    if (name !== undefined && name !== LOCATION.name)
      throw invalid(`${field} must be one of ${LOCATION.name}`, field)
  }
}

const getBasinConfig: Endpoint = async (request, hw) =>
  jsonReply(basinConfigJson(await hw.basin(request.basin).config()))

const reconfigureBasin: Endpoint = async (request, hw) => {
  const { basin } = request
  const change = decodeBasinReconfiguration(await jsonBody(request))
  return jsonReply(basinConfigJson(await hw.basin(basin).reconfigure(change)))
}

const deleteBasin: Endpoint = async (request, hw) => {
  await hw.basin(request.basin).delete()
  return { status: 202 }
}

const listLocations: Endpoint = async (_, hw) => jsonReply(locationsJson(await hw.listLocations()))

const getDefaultLocation: Endpoint = async (_, hw) =>
  jsonReply(LOCATION_INFO.text(await hw.defaultLocation()))

const setDefaultLocation: Endpoint = async (request, hw) => {
  const location = decodeLocation(await jsonBody(request))
  return jsonReply(LOCATION_INFO.text(await hw.setDefaultLocation(location)))
}

const listStreams: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const query = decodeListQuery(request.query, streamPrefixProblem)
  return jsonReply(STREAM_PAGE.text(await basin.listStreams(query)))
}

/** An idempotent replay also replies 201. */
const createStream: Endpoint = async (request, hw) => {
  const { requestToken } = request
  const basin = basinOf(request, hw)
  const { stream, config } = decodeCreateStream(await jsonBody(request))
  const { result, info } = await basin.createStream(stream, config, { requestToken })
  return jsonReply(STREAM_INFO.text(info), 201, request.provisionHeaders(result))
}

const ensureStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const { stream } = request
  const config = decodeEnsureStream(await optionalBody(request))
  const { result, info } = await basin.ensureStream(stream, config)
  return jsonReply(STREAM_INFO.text(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

const getStreamConfig: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  return jsonReply(streamConfigJson(await basin.stream(request.stream).config()))
}

const reconfigureStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const { stream } = request
  const change = decodeStreamReconfiguration(await jsonBody(request))
  return jsonReply(streamConfigJson(await basin.stream(stream).reconfigure(change)))
}

const deleteStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  await basin.stream(request.stream).delete()
  return { status: 202 }
}

const listAccessTokens: Endpoint = async (request, hw) => {
  const query = decodeListQuery(request.query, accessTokenPrefixProblem)
  return jsonReply(ACCESS_TOKEN_PAGE.text(await hw.listAccessTokens(query)))
}

const issueAccessToken: Endpoint = async (request, hw) => {
  const token = await hw.issueAccessToken(decodeAccessToken(await jsonBody(request)))
  // The response is the only copy of the token: no cache may store it.
  return jsonReply(ISSUED_TOKEN.text({ accessToken: token }), 201, { 'cache-control': 'no-store' })
}

const revokeAccessToken: Endpoint = async (request, hw) => {
  await hw.revokeAccessToken(request.tokenId)
  return { status: 204 }
}

function basinOf(request: ApiRequest, hw: Engine): EngineBasin {
  return hw.basin(request.basin, { autoCreate: false })
}

/** The endpoints of basins, streams, access tokens and locations. */
export const CONTROL_PLANE_ROUTES: readonly Route<Methods>[] = [
  {
    pattern: '/v1/basins',
    target: { GET: permitted(listBasins, 'list-basins'), POST: permitted(createBasin, 'create-basin') },
  },
  {
    pattern: '/v1/basins/{basin}',
    target: {
      GET: permitted(getBasinConfig, 'get-basin-config'),
      PUT: permitted(ensureBasin, 'create-basin', 'reconfigure-basin'),
      PATCH: permitted(reconfigureBasin, 'reconfigure-basin'),
      DELETE: permitted(deleteBasin, 'delete-basin'),
    },
  },
  {
    pattern: '/v1/streams',
    target: { GET: permitted(listStreams, 'list-streams'), POST: permitted(createStream, 'create-stream') },
  },
  {
    pattern: '/v1/streams/{stream}',
    target: {
      GET: permitted(getStreamConfig, 'get-stream-config'),
      PUT: permitted(ensureStream, 'create-stream', 'reconfigure-stream'),
      PATCH: permitted(reconfigureStream, 'reconfigure-stream'),
      DELETE: permitted(deleteStream, 'delete-stream'),
    },
  },
  {
    pattern: '/v1/access-tokens',
    target: {
      GET: permitted(listAccessTokens, 'list-access-tokens'),
      POST: permitted(issueAccessToken, 'issue-access-token'),
    },
  },
  {
    pattern: '/v1/access-tokens/{id}',
    target: { DELETE: permitted(revokeAccessToken, 'revoke-access-token') },
  },
  { pattern: '/v1/locations', target: { GET: permitted(listLocations, 'list-locations') } },
  {
    pattern: '/v1/locations/default',
    target: {
      GET: permitted(getDefaultLocation, 'get-default-location'),
      PUT: permitted(setDefaultLocation, 'set-default-location'),
    },
  },
]
