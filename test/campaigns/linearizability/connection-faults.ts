import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { Prng } from '../../../src/runtime/prng.ts'

/** Faults of a connection. With each of them, the connection ends for the client. */
export type ConnectionFault =
  /** The request is lost. */
  | 'request lost'
  /** A part of the request arrives. */
  | 'request torn'
  /** The request arrives, but only after the client has lost the connection. */
  | 'request late'
  /** The server has handled the request; the client receives nothing of the response. */
  | 'answer lost'
  /** The client receives a part of the response. */
  | 'answer torn'

export const REQUEST_FAULTS = ['request lost', 'request torn', 'request late'] as const
export const ANSWER_FAULTS = ['answer lost', 'answer torn'] as const

export interface FaultSource {
  /** The faults of the next piece from the client and from the server. */
  request(): (typeof REQUEST_FAULTS)[number] | undefined
  answer(): (typeof ANSWER_FAULTS)[number] | undefined
  /** Returns how many of these bytes are forwarded. */
  part(bytes: number): number
  /** Returns how many pieces of other connections pass before a late piece arrives. */
  lateChunks(): number
}

/** A fault with the given probability for each piece. */
export function seededFaults(prng: Prng, probability: number): FaultSource {
  return {
    request: () => (prng.chance(probability) ? prng.pick(REQUEST_FAULTS) : undefined),
    answer: () => (prng.chance(probability) ? prng.pick(ANSWER_FAULTS) : undefined),
    part: (bytes) => prng.below(bytes),
    lateChunks: () => 1 + prng.below(20),
  }
}

export interface FaultyConnections {
  readonly url: string
  /** The number of occurrences of each fault. */
  readonly counts: ReadonlyMap<ConnectionFault, number>
  /** Ends all connections. Late pieces arrive now. */
  close(): Promise<void>
}

/** A TCP proxy in front of a server that cuts connections. */
export async function faultyConnections(
  { host, port }: { readonly host: string; readonly port: number },
  faults: FaultSource,
): Promise<FaultyConnections> {
  const counts = new Map<ConnectionFault, number>()
  const pairs = new Set<Pair>()
  const late = new LateDeliveries()
  const counted = <Fault extends ConnectionFault>(fault: Fault | undefined) => {
    if (fault !== undefined) counts.set(fault, (counts.get(fault) ?? 0) + 1)
    return fault
  }

  const proxy = createServer({ noDelay: true }, (client) => {
    const pair = new Pair(client, connect({ host, port, noDelay: true }), () => pairs.delete(pair))
    pairs.add(pair)
    pair.client.on('data', (chunk) => {
      late.chunkPassed()
      if (!pair.isCut) pair.request(chunk, counted(faults.request()), faults, late)
    })
    pair.server.on('data', (chunk) => {
      late.chunkPassed()
      if (pair.isCut) pair.server.destroy()
      else pair.answer(chunk, counted(faults.answer()), faults)
    })
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    counts,
    async close() {
      late.deliver()
      const closed = once(proxy, 'close')
      proxy.close()
      for (const pair of pairs) pair.end()
      await closed
    },
  }
}

/** A connection of a client and the one to the server that carries it. */
class Pair {
  readonly client: Socket
  readonly server: Socket
  /** The client has lost its connection; responses are discarded. */
  isCut = false

  constructor(client: Socket, server: Socket, onClosed: () => void) {
    this.client = client
    this.server = server
    for (const socket of [client, server]) {
      const other = socket === client ? server : client
      // The other end notices the close.
      socket.on('error', () => {})
      socket.on('end', () => {
        if (!this.isCut) other.end()
      })
      socket.on('close', () => {
        if (!this.isCut) other.destroy()
        if (client.destroyed && server.destroyed) onClosed()
      })
    }
  }

  request(
    chunk: Buffer,
    fault: ReturnType<FaultSource['request']>,
    { part, lateChunks }: FaultSource,
    late: LateDeliveries,
  ): void {
    switch (fault) {
      case undefined:
        this.server.write(chunk)
        return
      case 'request lost':
        this.#cut(this.client, this.server)
        return
      case 'request torn':
        this.#cut(this.client)
        this.server.end(chunk.subarray(0, part(chunk.length)))
        return
      case 'request late':
        this.#cut(this.client)
        late.add(lateChunks(), () => this.server.write(chunk))
    }
  }

  answer(chunk: Buffer, fault: ReturnType<FaultSource['answer']>, { part }: FaultSource): void {
    switch (fault) {
      case undefined:
        this.client.write(chunk)
        return
      case 'answer lost':
        this.#cut(this.client, this.server)
        return
      case 'answer torn':
        this.#cut(this.server)
        this.client.end(chunk.subarray(0, part(chunk.length)))
    }
  }

  end(): void {
    this.#cut(this.client)
    // Sends what was written before closing.
    this.server.end(() => this.server.destroy())
  }

  #cut(...sockets: readonly Socket[]): void {
    this.isCut = true
    for (const socket of sockets) socket.destroy()
  }
}

/** Pieces that arrive after a number of other pieces. */
class LateDeliveries {
  #waiting: { chunks: number; readonly deliver: () => void }[] = []

  add(chunks: number, deliver: () => void): void {
    this.#waiting.push({ chunks, deliver })
  }

  chunkPassed(): void {
    if (this.#waiting.length === 0) return
    for (const waiting of this.#waiting) waiting.chunks--
    const due = this.#waiting.filter(({ chunks }) => chunks <= 0)
    this.#waiting = this.#waiting.filter(({ chunks }) => chunks > 0)
    for (const { deliver } of due) deliver()
  }

  deliver(): void {
    for (const { deliver } of this.#waiting.splice(0)) deliver()
  }
}
