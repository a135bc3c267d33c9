import type { Basin } from '../../../src/index.ts'
import { streamPrefixProblem } from '../../../src/model/names.ts'
import { decodeStreamReconfiguration } from '../../../src/wire/json-config-change.ts'
import { streamConfigJson } from '../../../src/wire/json-config-output.ts'
import { streamInfoJson, streamPageJson } from '../../../src/wire/json-info.ts'
import { decodeCreateStream, decodeEnsureStream } from '../../../src/wire/json-provision.ts'
import { decodeListQuery } from '../../../src/wire/query.ts'
import { jsonReply } from '../reply.ts'
import { jsonBody, optionalBody } from '../request-body.ts'
import type { RequestContext } from '../request-context.ts'
import { requestToken } from '../request-token.ts'
import type { Endpoint } from '../router.ts'
import { provisionedReply } from './provisioned.ts'

/** The endpoints of streams (wire-behaviour.md 1.2 rows 7 to 12, 8). */
export const listStreams: Endpoint = async (context) => {
  const basin = basinOf(context)
  const query = decodeListQuery(context.search, streamPrefixProblem)
  return jsonReply(streamPageJson(await basin.listStreams(query)))
}

/** An idempotent replay answers 201 as well (rulings.md "Basins"). */
export const createStream: Endpoint = async (context) => {
  const token = requestToken(context)
  const basin = basinOf(context)
  const { stream, config } = decodeCreateStream(await jsonBody(context))
  const provisioned = await basin.createStream(stream, config, { requestToken: token })
  return provisionedReply(context, provisioned, streamInfoJson, 201)
}

export const ensureStream: Endpoint = async (context) => {
  const basin = basinOf(context)
  const stream = context.pathParameter('stream')
  const config = decodeEnsureStream(await optionalBody(context))
  const provisioned = await basin.ensureStream(stream, config)
  return provisionedReply(context, provisioned, streamInfoJson, provisioned.result === 'created' ? 201 : 200)
}

export const getStreamConfig: Endpoint = async (context) => {
  const basin = basinOf(context)
  return jsonReply(streamConfigJson(await basin.streamConfig(context.pathParameter('stream'))))
}

export const reconfigureStream: Endpoint = async (context) => {
  const basin = basinOf(context)
  const stream = context.pathParameter('stream')
  const change = decodeStreamReconfiguration(await jsonBody(context))
  return jsonReply(streamConfigJson(await basin.reconfigureStream(stream, change)))
}

export const deleteStream: Endpoint = async (context) => {
  const basin = basinOf(context)
  await basin.deleteStream(context.pathParameter('stream'))
  return { status: 202 }
}

function basinOf(context: RequestContext): Basin {
  return context.hw.basin(context.basinAddress(), { autoCreate: false })
}
