import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const streams = createHandler(hw, { prefix: '/streams' })
const parsed = createHandler(hw, { prefix: '/parsed' })
const port = Number(Deno.env.get('PORT'))
Deno.serve({ hostname: '127.0.0.1', port }, async (request) => {
  const { pathname } = new URL(request.url)
  if (pathname.startsWith('/streams/')) return streams(request)
  if (pathname.startsWith('/parsed/')) {
    if (request.method === 'POST') await request.json()
    return parsed(request)
  }
  if (pathname === '/stats') return Response.json(hw.stats())
  return new Response('Not found', { status: 404 })
})
