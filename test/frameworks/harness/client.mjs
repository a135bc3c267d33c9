import { once } from 'node:events'
import { request as http1Request } from 'node:http'
import { connect } from 'node:http2'

/** An HTTP client that leaves bodies as they are on the wire: `fetch` would decompress them. */
export class Client {
  #http2
  #session

  constructor(url, { http2 = false } = {}) {
    this.url = url
    this.#http2 = http2
  }

  /** Resolves to the response as soon as its headers are there; `body` is a readable stream. */
  async request(path, { method = 'GET', headers = {}, body, signal } = {}) {
    const response = this.#http2
      ? await http2Response(this.#connect(), { ':method': method, ':path': path, ...headers }, body, signal)
      : await http1Response(new URL(path, this.url), { method, headers, signal }, body)
    return Object.assign(response, {
      bytes: () => bytesOf(response.body),
      json: async () => JSON.parse(await bytesOf(response.body)),
    })
  }

  close() {
    this.#session?.destroy()
  }

  #connect() {
    if (this.#session === undefined || this.#session.destroyed) {
      this.#session = connect(this.url).on('error', () => {})
    }
    return this.#session
  }
}

async function http1Response(url, options, body) {
  // A response that breaks off is an error of its body; the request has that of the connection as well.
  const request = http1Request(url, options)
    .on('error', () => {})
    .end(body)
  const [response] = await once(request, 'response')
  return { status: response.statusCode, headers: response.headers, body: response }
}

async function http2Response(session, headers, body, signal) {
  // As with HTTP/1.1, what breaks off a response is an error of its body, which may not be read.
  const stream = session.request(headers, { endStream: body === undefined, signal }).on('error', () => {})
  if (body !== undefined) stream.end(body)
  const [responseHeaders] = await once(stream, 'response')
  return { status: responseHeaders[':status'], headers: responseHeaders, body: stream }
}

async function bytesOf(body) {
  const chunks = []
  for await (const chunk of body) chunks.push(chunk)
  return Buffer.concat(chunks)
}

/** The batches of a response of Server-Sent Events, as they arrive. */
export async function* batchesOf({ body }) {
  let text = ''
  for await (const chunk of body.setEncoding('utf8')) {
    const events = (text + chunk).split('\n\n')
    text = events.pop()
    for (const event of events) {
      if (/^event: batch$/m.test(event)) yield JSON.parse(/^data: (.*)$/m.exec(event)[1])
    }
  }
}
