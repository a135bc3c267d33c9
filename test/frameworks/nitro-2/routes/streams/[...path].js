import { toNodeHandler } from 'headwater/node'
import { engine } from '../../engine.js'

export default defineLazyEventHandler(async () => {
  const streams = toNodeHandler(await engine(), { prefix: '/streams' })
  return fromNodeMiddleware((req, res, _next) => streams(req, res)) // waits for the response
})
