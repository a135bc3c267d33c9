import { createHandler } from 'headwater/http'
import { Hono } from 'hono'
import { hw } from './streams.js'

const app = new Hono()
const streams = createHandler(hw, { prefix: '/streams' })
app.all('/streams/*', (c) => streams(c.req.raw))
const parsed = createHandler(hw, { prefix: '/parsed' })
app.all('/parsed/*', async (c) => {
  if (c.req.method === 'POST') await c.req.json()
  return parsed(c.req.raw)
})
app.get('/stats', (c) => c.json(hw.stats()))
Deno.serve({ port: Number(Deno.env.get('PORT')) }, app.fetch)
