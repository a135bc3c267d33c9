import { createServer, type RequestListener } from 'node:http'
import { Duplex } from 'node:stream'
import { loadNode, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { FIRST_FOLLOWERS } from '../load/followers.ts'
import { encodeRequest, type Request } from '../load/http.ts'

/**
 * Followers over streams within the process: it may not open 100,000 sockets. Both sides serve the same
 * connections.
 */
host({
  /** Each follower has a stream of its own, with a record. */
  async headwater({ size, follow }: { size: number; follow: Request }) {
    const { toNodeHandler } = await loadNode()
    const headwater = await openHeadwater(undefined, { openSessions: size + FIRST_FOLLOWERS })
    for (let number = 0; number < size + FIRST_FOLLOWERS; number++)
      await streamNumber(headwater, number).append('idle')
    return followersOf(toNodeHandler(headwater, { auth: 'none' }), follow)
  },

  /** Keeps `bytesEach` bytes for each follower. */
  bare({ follow, bytesEach }: { follow: Request; bytesEach: number }) {
    const kept: Uint8Array[] = []
    return followersOf((_, response) => {
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-cache, no-transform',
      })
      response.write('event: ping\ndata: {"timestamp":1700000000000}\n\n')
      kept.push(new Uint8Array(bytesEach).fill(1))
    }, follow)
  },
})

/** Opens as many followers as there are units. `{number}` in the path stands for that of the follower. */
async function followersOf(listener: RequestListener, follow: Request): Promise<Prepared> {
  const server = createServer(listener)
  const connections: Connection[] = []
  const open = async (count: number) => {
    for (let i = 0; i < count; i++) {
      const path = follow.path.replace('{number}', String(connections.length))
      const connection = new Connection(encodeRequest({ ...follow, path }))
      server.emit('connection', connection)
      await connection.opened
      connections.push(connection)
    }
  }
  await open(FIRST_FOLLOWERS)
  return { turn: open }
}

/** The server's end of a connection: gives it a request, and drops what it sends. */
class Connection extends Duplex {
  readonly localAddress = '127.0.0.1'
  /** Resolves when the response begins. */
  readonly opened: Promise<void>
  #onResponse: ((chunk: Buffer) => void) | undefined

  constructor(request: Buffer) {
    super()
    this.opened = new Promise((resolve, reject) => {
      this.#onResponse = (chunk) => {
        if (chunk.toString('latin1', 9, 12) === '200') resolve()
        else reject(new Error(chunk.toString()))
      }
    })
    this.push(request)
  }

  override _read(): void {}

  override _write(chunk: Buffer | string, _encoding: string, done: () => void): void {
    this.#onResponse?.(Buffer.from(chunk))
    this.#onResponse = undefined
    done()
  }
}
