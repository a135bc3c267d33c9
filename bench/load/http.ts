export interface Request {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** The bytes of a request over HTTP/1.1. */
export function encodeRequest({ method, path, headers = {}, body = '' }: Request): Buffer {
  const all = {
    host: 'localhost',
    ...headers,
    ...(body === '' ? {} : { 'content-length': Buffer.byteLength(body) }),
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

/** Throws if the response is an error, or if its length is unknown. */
export function missingBytesOfResponse(start: Buffer): number | undefined {
  const end = start.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = start.toString('latin1', 0, end)
  const status = head.slice(9, 12)
  if (!status.startsWith('2')) throw new Error(`${start.toString()}`)
  const length = status === '204' ? ['', '0'] : /\ncontent-length: *(\d+)/i.exec(head)
  if (length === null) throw new Error(`a response without content-length: ${head}`)
  return end + 4 + Number(length[1]) - start.length
}
