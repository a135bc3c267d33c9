import type { OpenSession } from '../open-sessions.ts'
import { jsonReply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

/** A reply lists no more. */
const FOLLOWERS_MAX = 1000

/**
 * Lists the read sessions of all handlers of the engine, those that are the farthest behind first
 * (docs/protocol.md "Followers"). `basin` and `stream` select those of one basin or stream.
 */
export const followers: Endpoint = async (request) => {
  const query = new URLSearchParams(request.query)
  const [basin, stream] = [query.get('basin'), query.get('stream')]
  const listed = [...request.sessions]
    .map(followerOf)
    .filter((one) => (basin === null || one.basin === basin) && (stream === null || one.stream === stream))
    .sort((a, b) => b.behind - a.behind)
  return jsonReply(
    JSON.stringify({
      followers: listed.slice(0, FOLLOWERS_MAX),
      has_more: listed.length > FOLLOWERS_MAX,
    }),
  )
}

function followerOf({ cursor, exchange, protocol, openedAt }: OpenSession) {
  const { basin, stream, position, tail } = cursor.state
  const client = exchange.header('user-agent')?.slice(0, 200)
  return {
    ...{ basin, stream, protocol, client },
    since: new Date(openedAt).toISOString(),
    next_seq_num: position,
    behind: Math.max(0, tail - position),
  }
}
