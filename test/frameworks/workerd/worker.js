import { createHandler } from 'headwater/http'
import { hw } from './streams.js'

const streams = createHandler(hw, { prefix: '/streams' })
const parsed = createHandler(hw, { prefix: '/parsed' })
let rootToken
export default {
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/streams/')) return streams(request)
    if (pathname.startsWith('/parsed/')) {
      if (request.method === 'POST') await request.json()
      return parsed(request)
    }
    if (pathname !== '/stats') return new Response('not found', { status: 404 })
    // Not at the top level: there are no random numbers outside of requests.
    rootToken ??= await hw.createRootToken()
    console.log(`root token: ${rootToken}`)
    return Response.json(hw.stats())
  },
}
