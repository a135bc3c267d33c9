import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Prng } from '../../../../src/runtime/random.ts'

/**
 * Faults of a piece of a request or of its response. With each of them, the connection ends for the client:
 * the request is lost, arrives in part, or arrives after that; or the server has handled it, and the client
 * receives nothing of the response, or a part.
 */
const REQUEST_FAULTS = ['lost', 'torn', 'late'] as const
const ANSWER_FAULTS = ['lost', 'torn'] as const

export interface CutConnections {
  readonly url: string
  /** Ends the faults. Pieces that are late arrive now. */
  settle(): Promise<void>
  close(): Promise<void>
}

/** A TCP proxy in front of a server that cuts connections. */
export async function cutConnections(
  { host, port }: { readonly host: string; readonly port: number },
  prng: Prng,
  probability: number,
): Promise<CutConnections> {
  let isSettled = false
  const sockets = new Set<Socket>()
  const late = new LateDeliveries()
  const faultOf = <Fault>(faults: readonly Fault[]) =>
    !isSettled && prng.chance(probability) ? prng.pick(faults) : undefined
  const torn = (chunk: Buffer) => chunk.subarray(0, prng.below(chunk.length))

  const proxy = createServer({ noDelay: true }, (client) => {
    const server = connect({ host, port, noDelay: true })
    let isCut = false
    const cut = (...ended: readonly Socket[]) => {
      isCut = true
      for (const socket of ended) socket.destroy()
    }
    for (const socket of [client, server]) {
      const other = socket === client ? server : client
      sockets.add(socket)
      // The other end notices the close.
      socket.on('error', () => {})
      socket.on('end', () => !isCut && other.end())
      socket.on('close', () => {
        sockets.delete(socket)
        if (!isCut) other.destroy()
      })
    }
    client.on('data', (chunk: Buffer) => {
      late.chunkPassed()
      if (isCut) return
      const fault = faultOf(REQUEST_FAULTS)
      if (fault === undefined) return void server.write(chunk)
      cut(client)
      if (fault === 'lost') server.destroy()
      if (fault === 'torn') server.end(torn(chunk))
      if (fault === 'late') late.add(1 + prng.below(20), () => server.end(chunk))
    })
    server.on('data', (chunk: Buffer) => {
      late.chunkPassed()
      if (isCut) return
      const fault = faultOf(ANSWER_FAULTS)
      if (fault === undefined) return void client.write(chunk)
      cut(server)
      if (fault === 'lost') client.destroy()
      else client.end(torn(chunk))
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    async settle() {
      isSettled = true
      late.deliver()
    },
    async close() {
      const closed = once(proxy, 'close')
      proxy.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

/** Pieces that arrive after a number of other pieces. */
class LateDeliveries {
  #waiting: { chunks: number; readonly deliver: () => void }[] = []

  add(chunks: number, deliver: () => void): void {
    this.#waiting.push({ chunks, deliver })
  }

  chunkPassed(): void {
    for (const waiting of this.#waiting) waiting.chunks--
    const due = this.#waiting.filter(({ chunks }) => chunks <= 0)
    this.#waiting = this.#waiting.filter(({ chunks }) => chunks > 0)
    for (const { deliver } of due) deliver()
  }

  deliver(): void {
    for (const { deliver } of this.#waiting.splice(0)) deliver()
  }
}
