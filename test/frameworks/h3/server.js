import { H3, serve } from 'h3'
import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const app = new H3()
const streams = createHandler(hw, { prefix: '/streams' })
app.all('/streams/**', (event) => streams(event.req))
const parsed = createHandler(hw, { prefix: '/parsed' })
app.all('/parsed/**', async (event) => {
  if (event.req.method === 'POST') await event.req.json()
  return parsed(event.req)
})
app.get('/stats', () => hw.stats())
serve(app, { port: Number(process.env.PORT), silent: true })
