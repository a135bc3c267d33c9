import { Elysia } from 'elysia'
import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const streams = createHandler(hw, { prefix: '/streams' })
const parsed = createHandler(hw, { prefix: '/parsed' })
new Elysia({ serve: { idleTimeout: 0 } })
  .all('/streams/*', ({ request }) => streams(request), { parse: 'none' }) // the handler reads the body
  .all('/parsed/*', ({ body, request }) => parsed(request, body))
  .get('/stats', () => hw.stats())
  .listen(Number(process.env.PORT))
