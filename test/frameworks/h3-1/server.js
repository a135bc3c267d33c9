import { createServer } from 'node:http'
import { createApp, eventHandler, fromNodeMiddleware, readBody, toNodeListener } from 'h3'
import { toNodeHandler } from 'headwater/node'
import { hw } from './streams.js'

const app = createApp()
const streams = toNodeHandler(hw)
const middleware = fromNodeMiddleware((req, res, _next) => streams(req, res)) // waits for the response
app.use('/streams', middleware)
const parsed = toNodeHandler(hw)
app.use(
  '/parsed',
  eventHandler(async (event) => void (event.method === 'POST' && (await readBody(event)))),
)
app.use(
  '/parsed',
  fromNodeMiddleware((req, res, _next) => parsed(req, res)),
)
app.use(
  '/stats',
  eventHandler(() => hw.stats()),
)
createServer(toNodeListener(app)).listen(Number(process.env.PORT))
