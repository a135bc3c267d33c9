import { Agent, request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Prepared } from '../harness/host.ts'
import { encodeRequest, type Request } from './http.ts'

/** The server compiles its code before the burst. */
const WARM_UP_MS = 1_000
/** Long enough for the server to fill all buffers of the connections. */
const BURST_MS = 8_000
const INTERVAL_MS = 5

export interface Burst {
  readonly port: number
  /** How many connections request `download` at the same time, and never read. */
  readonly connections: number
  readonly download: Request
  /** What others do meanwhile, each on a connection of its own. */
  readonly others: readonly Request[]
}

/** The time of a turn is the longest that a request of the others takes. */
export function burst({ port, connections, download, others }: Burst): Prepared {
  const begin = encodeRequest(download)
  return {
    async turn() {
      const agents = others.map(() => new Agent({ keepAlive: true, maxSockets: 1 }))
      let longest = 0
      let isOver = false
      const loops = others.map(async (other, index) => {
        while (!isOver) {
          longest = Math.max(longest, await timeOf(port, agents[index]!, other))
          await setTimeout(INTERVAL_MS)
        }
      })
      await setTimeout(WARM_UP_MS)
      longest = 0
      const sockets = Array.from({ length: connections }, () => {
        const socket = connect({ port, host: '127.0.0.1' }).pause()
        // The server may end what is not read.
        socket.on('error', () => {}).write(begin)
        return socket
      })
      await setTimeout(BURST_MS)
      isOver = true
      await Promise.all(loops)
      for (const socket of sockets) socket.destroy()
      for (const agent of agents) agent.destroy()
      return { wallMs: longest, units: 1 }
    },
  }
}

/** The milliseconds until the response has arrived. */
function timeOf(port: number, agent: Agent, { method, path, headers, body }: Request): Promise<number> {
  const start = performance.now()
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', agent, method, path, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`status ${response.statusCode}`))
      response.resume().on('end', () => resolve(performance.now() - start))
    })
    request.on('error', reject).end(body)
  })
}
