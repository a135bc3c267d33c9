import { connect, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'
import { type ServeOptions, serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type OpenOptions, open } from '../../src/index.ts'

export const BASIN = 'test-basin'

export async function server(options: ServeOptions = {}, engine: Partial<OpenOptions> = {}) {
  const hw = await open({ storage: memory(), ...engine })
  await hw.createBasin(BASIN)
  await hw.basin(BASIN).createStream('s', { timestamping: { uncapped: true } })
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const node = await serve(hw, { auth: 'none', onError, ...options })
  onTestFinished(async () => {
    await Promise.all([node.close({ graceMs: 100 }), hw.close()])
  })
  return { hw, node, errors, port: node.port, url: node.url }
}

export interface RawResponse {
  readonly status: number
  readonly headers: Map<string, string>
  readonly body: string
}

/** A TCP connection; bytes are latin1 strings. */
export class Raw {
  readonly socket: Socket
  /** What has arrived, and was not returned as a response. */
  received = ''
  ended = false
  /** Resolves when the server has ended the connection. */
  readonly closed: Promise<void>
  #wake: (() => void) | undefined

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text: string) => {
      this.received += text
      this.#wake?.()
    })
    this.closed = new Promise((resolve) => {
      const end = () => {
        this.ended = true
        this.#wake?.()
        resolve()
      }
      this.socket.on('end', end).on('close', end).on('error', end)
    })
    onTestFinished(() => void this.socket.destroy())
  }

  send(data: string | Uint8Array): this {
    this.socket.write(data, 'latin1')
    return this
  }

  async #more(): Promise<void> {
    if (this.ended) throw new Error(`closed after ${JSON.stringify(this.received)}`)
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  async until(text: string): Promise<string> {
    while (!this.received.includes(text)) await this.#more()
    return this.received
  }

  async response(): Promise<RawResponse> {
    while (!this.received.includes('\r\n\r\n')) await this.#more()
    const split = this.received.indexOf('\r\n\r\n')
    const [line, ...fields] = this.received.slice(0, split).split('\r\n')
    const headers = new Map(
      fields.map((field) => [
        field.slice(0, field.indexOf(':')).toLowerCase(),
        field.slice(field.indexOf(':') + 1).trim(),
      ]),
    )
    this.received = this.received.slice(split + 4)
    const status = Number(line!.split(' ')[1])
    let body = ''
    if (headers.get('transfer-encoding') === 'chunked') {
      for (;;) {
        while (!this.received.includes('\r\n')) await this.#more()
        const at = this.received.indexOf('\r\n')
        const size = Number.parseInt(this.received.slice(0, at), 16)
        while (this.received.length < at + 4 + size) await this.#more()
        body += this.received.slice(at + 2, at + 2 + size)
        this.received = this.received.slice(at + 4 + size)
        if (size === 0) break
      }
    } else {
      const length = Number(headers.get('content-length') ?? 0)
      while (this.received.length < length) await this.#more()
      body = this.received.slice(0, length)
      this.received = this.received.slice(length)
    }
    return { status, headers, body }
  }
}

export function request(
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body = '',
): string {
  const all = {
    host: 'localhost',
    ...(body !== '' && { 'content-length': String(Buffer.byteLength(body, 'latin1')) }),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

export async function exchange(
  port: number,
  method: string,
  target: string,
  headers: Record<string, string> = {},
  body = '',
): Promise<RawResponse> {
  const raw = new Raw(port)
  raw.send(request(method, target, headers, body))
  try {
    return await raw.response()
  } finally {
    raw.socket.destroy()
  }
}
