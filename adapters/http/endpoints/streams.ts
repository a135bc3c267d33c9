import type { Engine, EngineBasin } from '../../../src/index.ts'
import { streamPrefixProblem } from '../../../src/model/control-names.ts'
import { decodeStreamReconfiguration, streamConfigJson } from '../../../src/wire/json-config.ts'
import { tailJson } from '../../../src/wire/json-records.ts'
import {
  decodeCreateStream,
  decodeEnsureStream,
  streamInfoJson,
  streamPageJson,
} from '../../../src/wire/json-resources.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonBody, optionalBody } from '../body.ts'
import { jsonReply } from '../reply.ts'
import type { ApiRequest, Endpoint } from '../request.ts'

export const listStreams: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const query = decodeListQuery(request.query, streamPrefixProblem)
  return jsonReply(streamPageJson(await basin.listStreams(query)))
}

/** An idempotent replay also replies 201. */
export const createStream: Endpoint = async (request, hw) => {
  const { requestToken } = request
  const basin = basinOf(request, hw)
  const { stream, config } = decodeCreateStream(await jsonBody(request))
  const { result, info } = await basin.createStream(stream, config, { requestToken })
  return jsonReply(streamInfoJson(info), 201, request.provisionHeaders(result))
}

export const ensureStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const { stream } = request
  const config = decodeEnsureStream(await optionalBody(request))
  const { result, info } = await basin.ensureStream(stream, config)
  return jsonReply(streamInfoJson(info), result === 'created' ? 201 : 200, request.provisionHeaders(result))
}

export const getStreamConfig: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  return jsonReply(streamConfigJson(await basin.stream(request.stream).storedConfig()))
}

export const reconfigureStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  const { stream } = request
  const change = decodeStreamReconfiguration(await jsonBody(request))
  return jsonReply(streamConfigJson(await basin.stream(stream).reconfigureStored(change)))
}

export const deleteStream: Endpoint = async (request, hw) => {
  const basin = basinOf(request, hw)
  await basin.stream(request.stream).delete()
  return { status: 202 }
}

export const checkTail: Endpoint = async (request, hw) =>
  jsonReply(tailJson(await request.streamOf(hw, { takesKey: false }).checkTail()))

function basinOf(request: ApiRequest, hw: Engine): EngineBasin {
  return hw.basin(request.basin, { autoCreate: false })
}
