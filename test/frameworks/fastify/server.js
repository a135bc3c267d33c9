import Fastify from 'fastify'
import { toNodeHandler } from 'headwater/node'
import { hw } from './streams.js'

const app = Fastify()
const streams = toNodeHandler(hw, { prefix: '/streams' })
app.register(async (scope) => {
  scope.removeAllContentTypeParsers() // the handler reads the body
  scope.addContentTypeParser('*', (_request, _payload, done) => done(null))
  scope.all('/streams/*', (request, reply) => {
    reply.hijack()
    streams(request.raw, reply.raw)
  })
})
const parsed = toNodeHandler(hw, { prefix: '/parsed' })
app.all('/parsed/*', (request, reply) => {
  reply.hijack()
  parsed(request.raw, reply.raw)
})
app.get('/stats', () => hw.stats())
app.listen({ port: Number(process.env.PORT) })
