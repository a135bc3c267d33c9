import { toNodeHandler } from 'headwater/node'
import { engine } from '../../engine.js'

const streams = toNodeHandler(engine, { prefix: '/streams' })
export default fromNodeMiddleware((req, res, _next) => streams(req, res)) // waits for the response
