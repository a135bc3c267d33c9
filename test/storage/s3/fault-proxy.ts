import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'

const FAULTS = [
  'lose request',
  'lose response',
  'cut request',
  'cut response',
  'delay',
  'repeat',
  'repeat late',
  'slow down',
] as const

/** What the proxy does with a request, in place of passing it on. */
export type ProxyFault = (typeof FAULTS)[number]

/** Decides what happens. */
export interface FaultPlan {
  /** In [0, 1). */
  next(): number
  pick<Item>(items: readonly Item[]): Item
}

interface Reply {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/**
 * An HTTP proxy between a client and a server, which loses, delays, repeats and cuts requests and replies. What
 * it delays or repeats arrives even if the client has been killed meanwhile, as in a network.
 */
export class FaultProxy {
  readonly endpoint: string
  readonly faults = new Map<ProxyFault, number>()
  /** The share of requests that suffer a fault. */
  rate = 0
  /** The longest delay of a request or its repetition, in milliseconds. */
  delayMsMax = 1_000
  readonly #server: Server
  readonly #target: URL
  readonly #plan: FaultPlan

  private constructor(server: Server, target: string, plan: FaultPlan) {
    this.#server = server
    this.#target = new URL(target)
    this.#plan = plan
    const { port } = server.address() as AddressInfo
    this.endpoint = `http://127.0.0.1:${port}`
    server.on('request', (incoming, reply) => {
      this.#handle(incoming, reply).catch(() => incoming.socket.destroy())
    })
  }

  static async start(target: string, plan: FaultPlan): Promise<FaultProxy> {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FaultProxy(server, target, plan)
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method, url, headers } = incoming
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk)
    const received = { method: method!, path: url!, headers, body: Buffer.concat(chunks) }
    const fault = this.#plan.next() < this.rate ? this.#plan.pick(FAULTS) : undefined
    if (fault !== undefined) this.faults.set(fault, (this.faults.get(fault) ?? 0) + 1)
    if (fault === 'lose request') throw new Error(fault)
    if (fault === 'cut request') await this.#cutRequest(received)
    if (fault === 'slow down') return send(outgoing, slowDown())
    if (fault === 'delay') await setTimeout(this.#delayMs())
    // As a proxy does that has lost the first reply.
    if (fault === 'repeat') await this.#pass(received)
    const reply = await this.#pass(received)
    if (fault === 'lose response') throw new Error(fault)
    if (fault === 'cut response') return await cutReply(outgoing, reply)
    send(outgoing, reply)
    if (fault !== 'repeat late') return
    await setTimeout(this.#delayMs())
    await this.#pass(received)
  }

  #delayMs(): number {
    return this.#plan.next() * this.delayMsMax
  }

  async #pass({ body, ...received }: ReceivedRequest): Promise<Reply> {
    const passed = this.#request(received)
    passed.end(body)
    const [response] = (await once(passed, 'response')) as [IncomingMessage]
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    return { status: response.statusCode!, headers: response.headers, body: Buffer.concat(chunks) }
  }

  /** Sends half of a request, and closes the connection. */
  async #cutRequest({ body, ...received }: ReceivedRequest): Promise<never> {
    const cut = this.#request(received)
    const closed = once(cut, 'close').catch(() => {})
    cut.on('error', () => {})
    cut.flushHeaders()
    cut.write(body.subarray(0, body.length / 2))
    await setTimeout(20)
    cut.destroy()
    await closed
    throw new Error('cut request')
  }

  /** The host is signed, so it stays that of the proxy. */
  #request({ method, path, headers }: Omit<ReceivedRequest, 'body'>) {
    const { hostname, port } = this.#target
    return request({ hostname, port, method, path, headers, agent: false })
  }
}

function slowDown(): Reply {
  const body = Buffer.from('<Error><Code>SlowDown</Code><Message>reduce your request rate</Message></Error>')
  return { status: 503, headers: {}, body }
}

function send(outgoing: ServerResponse, { status, headers, body }: Reply): void {
  outgoing.writeHead(status, headers)
  outgoing.end(body)
}

async function cutReply(outgoing: ServerResponse, { status, headers, body }: Reply): Promise<never> {
  outgoing.writeHead(status, { ...headers, 'content-length': String(Math.max(body.length, 1)) })
  outgoing.flushHeaders()
  outgoing.write(body.subarray(0, body.length / 2))
  await setTimeout(20)
  throw new Error('cut response')
}
