import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const parsed = createHandler(hw, { prefix: '/parsed' })

Bun.serve({
  idleTimeout: 0, // the default closes a connection that is silent for 10 seconds
  port: Number(process.env.PORT),
  routes: {
    '/streams/*': createHandler(hw, { prefix: '/streams' }),
    '/parsed/*': async (request) => {
      if (request.method === 'POST') await request.json()
      return parsed(request)
    },
    '/stats': () => Response.json(hw.stats()),
  },
})
