import { toNodeHandler } from 'headwater/node'
import { engine } from '../../engine.js'

const streams = toNodeHandler(engine, { prefix: '/parsed' })
const handler = fromNodeMiddleware((req, res, _next) => streams(req, res))
export default defineEventHandler(async (event) => {
  if (event.method === 'POST') await readBody(event)
  return handler(event)
})
