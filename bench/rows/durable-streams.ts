import type { Contestant, Measurement } from '../harness/measurement.ts'
import { textOf } from '../harness/records.ts'
import { MARK } from '../load/followers.ts'

const CONNECTIONS = 32
const FOLLOWERS = 1_000
const BODY = textOf()
const PATH = '/v1/stream/my-stream'

const append = {
  method: 'POST',
  path: PATH,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify([{ body: BODY }]),
}
const markedAppend = { ...append, body: JSON.stringify([{ body: `${MARK}${BODY.slice(1)}` }]) }
const follow = { method: 'GET', path: `${PATH}?offset=now&live=sse`, headers: {} }
const appends = { side: 'requests', params: { connections: CONNECTIONS, request: append } }
const fanout = { side: 'fanout', params: { followers: FOLLOWERS, follow, append: markedAppend } }

const OURS = 'headwater-durable-streams'
const THEIRS = 'durable-streams-server'

/** The same requests to both servers of the protocol. */
function row(
  title: string,
  load: NonNullable<Contestant['load']>,
  onDisk: boolean,
  by: Partial<Measurement['rivals'][number]> = {},
): Measurement {
  const side = { side: 'server', params: { onDisk }, load }
  return {
    needsPeers: true,
    work: `Durable Streams: ${title}, ${onDisk ? 'filesystem' : 'memory'}`,
    each: load === fanout ? 'a delivery' : 'an append',
    ours: { program: OURS, ...side },
    rivals: [
      {
        against: `\`@durable-streams/server\`, ${onDisk ? 'files' : 'memory'}`,
        contestant: { program: THEIRS, ...side },
        atLeast: 1.5,
        ...by,
      },
    ],
  }
}

const APPEND = `append of 1 KiB as JSON, ${CONNECTIONS} connections`
const FANOUT = '1,000 followers by SSE, 40 messages of 1 KiB a second, CPU time of the server'

export const durableStreamsRows: Readonly<Record<string, Measurement>> = {
  'durable-append': row(APPEND, appends, false),
  'durable-append-disk': row(APPEND, appends, true),
  'durable-fanout': row(FANOUT, fanout, false, { by: 'cpu' }),
  'durable-fanout-disk': row(FANOUT, fanout, true, { by: 'cpu' }),
}
