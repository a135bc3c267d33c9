import { host } from '../harness/host.ts'
import { appendSession } from '../load/append-session.ts'
import { burst } from '../load/burst.ts'
import { type Address, closedLoop } from '../load/closed-loop.ts'
import { fanout } from '../load/followers.ts'
import { encodeRequest, missingBytesOfResponse, type Request } from '../load/http.ts'
import { downloads } from '../load/http2.ts'

host({
  requests: ({ connections, request, ...address }: Address & { connections: number; request: Request }) =>
    closedLoop(address, connections, encodeRequest(request), missingBytesOfResponse),
  redis: ({
    connections,
    command,
    ...address
  }: Address & { connections: number; command: readonly string[] }) =>
    closedLoop(address, connections, encodeCommand(command), missingBytesOfReply),
  'append session': appendSession,
  downloads,
  burst,
  fanout,
})

function encodeCommand(words: readonly string[]): Buffer {
  const strings = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`)
  return Buffer.from(`*${words.length}\r\n${strings.join('')}`)
}

/** A bulk string: its length and its bytes. */
function missingBytesOfReply(start: Buffer): number | undefined {
  const end = start.indexOf('\r\n')
  if (end < 0) return undefined
  if (start[0] !== '$'.charCodeAt(0)) throw new Error(start.toString())
  return end + 4 + Number(start.toString('latin1', 1, end)) - start.length
}
