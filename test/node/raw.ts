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

/** One HTTP/1.1 connection; bytes are latin1 strings. */
export class Raw {
  readonly socket: Socket
  #buffer = ''
  #wake: (() => void) | undefined
  ended = false
  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text: string) => {
      this.#buffer += text
      this.#wake?.()
    })
    const end = () => {
      this.ended = true
      this.#wake?.()
    }
    this.socket.on('end', end).on('close', end).on('error', end)
    onTestFinished(() => void this.socket.destroy())
  }
  get pending(): string {
    return this.#buffer
  }
  send(text: string): this {
    this.socket.write(Buffer.from(text, 'latin1'))
    return this
  }
  async #more(): Promise<void> {
    if (this.ended) throw new Error(`closed after ${JSON.stringify(this.#buffer)}`)
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }
  async until(text: string): Promise<string> {
    while (!this.#buffer.includes(text)) await this.#more()
    return this.#buffer
  }
  async response(): Promise<RawResponse> {
    while (!this.#buffer.includes('\r\n\r\n')) await this.#more()
    const split = this.#buffer.indexOf('\r\n\r\n')
    const [line, ...fields] = this.#buffer.slice(0, split).split('\r\n')
    const headers = new Map(
      fields.map((field) => [
        field.slice(0, field.indexOf(':')).toLowerCase(),
        field.slice(field.indexOf(':') + 1).trim(),
      ]),
    )
    this.#buffer = this.#buffer.slice(split + 4)
    const status = Number(line!.split(' ')[1])
    let body = ''
    if (headers.get('transfer-encoding') === 'chunked') {
      for (;;) {
        while (!this.#buffer.includes('\r\n')) await this.#more()
        const at = this.#buffer.indexOf('\r\n')
        const size = Number.parseInt(this.#buffer.slice(0, at), 16)
        while (this.#buffer.length < at + 4 + size) await this.#more()
        body += this.#buffer.slice(at + 2, at + 2 + size)
        this.#buffer = this.#buffer.slice(at + 4 + size)
        if (size === 0) break
      }
    } else {
      const length = Number(headers.get('content-length') ?? 0)
      while (this.#buffer.length < length) await this.#more()
      body = this.#buffer.slice(0, length)
      this.#buffer = this.#buffer.slice(length)
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
