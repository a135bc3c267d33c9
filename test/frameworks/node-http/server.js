import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { toNodeHandler } from 'headwater/node'
import { hw } from './streams.js'

const streams = toNodeHandler(hw, { prefix: '/streams' })
const parsed = toNodeHandler(hw, { prefix: '/parsed' })
const server = createServer((req, res) => {
  if (req.url.startsWith('/streams/')) return streams(req, res)
  if (req.url.startsWith('/parsed/')) return text(req).then(() => parsed(req, res))
  if (req.url === '/stats') return res.end(JSON.stringify(hw.stats()))
  res.writeHead(404).end()
})
server.listen(Number(process.env.PORT))
