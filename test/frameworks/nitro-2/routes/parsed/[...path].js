import { toNodeHandler } from 'headwater/node'
import { engine } from '../../engine.js'

export default defineLazyEventHandler(async () => {
  const streams = toNodeHandler(await engine(), { prefix: '/parsed' })
  const handler = fromNodeMiddleware((req, res, _next) => streams(req, res))
  return defineEventHandler(async (event) => {
    if (event.method === 'POST') await readBody(event)
    return handler(event)
  })
})
