import { serve } from '@hono/node-server'
import { createHandler } from 'headwater/http'
import { Hono } from 'hono'
import { compress } from 'hono/compress'
import { hw } from './streams.js'

const app = new Hono()
app.use(compress())
const streams = createHandler(hw, { prefix: '/streams' })
app.all('/streams/*', (c) => streams(c.req.raw))
const parsed = createHandler(hw, { prefix: '/parsed' })
app.all('/parsed/*', async (c) => {
  if (c.req.method === 'POST') await c.req.json()
  return parsed(c.req.raw)
})
app.get('/stats', (c) => c.json(hw.stats()))
serve({ fetch: app.fetch, port: Number(process.env.PORT) })
