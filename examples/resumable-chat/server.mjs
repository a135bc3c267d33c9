// The backend of the app: its files, an API that begins answers, and below `/v1` the streams.
import { join } from 'node:path'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'
import { Chats } from './chats.mjs'

const BODY_BYTES_MAX = 100_000
const ID = /^[\w-]{1,64}$/

/** Serves the directory of the built app on localhost. The chats are in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  await hw.ensureBasin('chat')
  const chats = new Chats(hw.basin('chat'))
  const api = (request, response) => respond(chats, request, response)
  const server = await serveApp({ hw, files, port, api, durableStreams: { basin: 'chat' } })
  await chats.resume()
  return {
    url: server.url,
    async close() {
      await chats.close()
      await server.close()
    },
  }
}

/** Replies to requests below `/api/chat`, as the transport of the AI SDK expects. */
async function respond(chats, request, response) {
  const { pathname } = new URL(request.url, 'http://localhost')
  const [, id, isStream] = /^\/api\/chat(?:\/([^/]+)(\/stream)?)?$/.exec(pathname) ?? [undefined]
  if (pathname === '/api/chat' && request.method === 'POST') {
    const { id, messages } = JSON.parse(await bodyOf(request))
    const question = messages?.at(-1)
    if (!ID.test(id) || !ID.test(question?.id) || question.role !== 'user') return send(response, 400)
    return sendStream(response, 201, await chats.ask(id, question))
  }
  if (request.method !== 'GET' || !ID.test(id)) return send(response, 404)
  if (isStream === undefined) return send(response, 200, await chats.messages(id))
  const answer = await chats.unanswered(id)
  return answer === undefined ? response.writeHead(204).end() : sendStream(response, 200, answer)
}

async function bodyOf(request) {
  let body = ''
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk
    if (body.length > BODY_BYTES_MAX) throw new Error(`a request has at most ${BODY_BYTES_MAX} bytes`)
  }
  return body
}

function sendStream(response, status, name) {
  response.setHeader('location', `/v1/stream/${name}`)
  send(response, status, { streamUrl: `/v1/stream/${name}` })
}

function send(response, status, value = {}) {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
}
