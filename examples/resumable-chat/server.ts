import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'
import { Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { Chats } from './chats.ts'

/**
 * Opens the chats in the directory `data`, and continues the answers that were not finished. The handler
 * serves the streams below `/v1`, and what the transport of the AI SDK expects below `/api`. It asks for no
 * token, because Vite listens on this machine only.
 */
export async function startServer() {
  const hw = await open({ storage: filesystem('data') })
  await hw.ensureBasin('chat')
  const chats = new Chats(hw.basin('chat'))
  await chats.resume()
  const api = getRequestListener(routesOf(chats).fetch)
  const streams = toNodeHandler(hw, { auth: 'none', durableStreams: { basin: 'chat' } })
  return {
    handler(request: IncomingMessage, response: ServerResponse, next: () => void) {
      if (request.url!.startsWith('/api/')) void api(request, response)
      else streams(request, response, next)
    },
    async close() {
      await chats.close()
      await hw.close()
    },
  }
}

function routesOf(chats: Chats): Hono {
  const routes = new Hono()
  routes.use(bodyLimit({ maxSize: 100_000 }))
  routes.get('/api/chats', async (c) => c.json(await chats.list()))

  routes.post('/api/chat', async (c) => {
    const { id, messages } = await c.req.json()
    const question = messages?.at(-1)
    if (!isId(id) || !isId(question?.id) || question.role !== 'user') return c.body(null, 400)
    const streamUrl = `/v1/stream/${await chats.ask(id, question)}`
    return c.json({ streamUrl }, 201, { location: streamUrl })
  })

  routes.get('/api/chat/:id{[\\w-]{1,64}}', async (c) => c.json(await chats.messages(c.req.param('id'))))

  routes.get('/api/chat/:id{[\\w-]{1,64}}/stream', async (c) => {
    const name = await chats.unanswered(c.req.param('id'))
    if (name === undefined) return c.body(null, 204)
    const streamUrl = `/v1/stream/${name}`
    return c.json({ streamUrl }, 200, { location: streamUrl })
  })

  routes.delete('/api/chat/:id{[\\w-]{1,64}}/stream', async (c) => {
    await chats.stop(c.req.param('id'))
    return c.body(null, 204)
  })
  return routes
}

function isId(id: unknown): id is string {
  return typeof id === 'string' && /^[\w-]{1,64}$/.test(id)
}
