import { Elysia } from 'elysia'
import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const streams = createHandler(hw, { prefix: '/streams' })
const parsed = createHandler(hw, { prefix: '/parsed' })
const uncompressed = createHandler(hw, { prefix: '/uncompressed', compression: false })
new Elysia({ serve: { idleTimeout: 0 } })
  .all('/streams/*', ({ request }) => streams(request), { parse: 'none' }) // the handler reads the body
  .all('/parsed/*', ({ body, request }) => parsed(request, body))
  .get('/uncompressed/*', ({ request }) => uncompressed(request))
  .get('/stats', () => hw.stats())
  .listen(Number(process.env.PORT))
