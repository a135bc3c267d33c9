import { toNodeHandler } from 'headwater/node'
import Koa from 'koa'
import bodyParser from 'koa-bodyparser'
import { hw } from './streams.js'

const app = new Koa()
const streams = toNodeHandler(hw, { prefix: '/streams' })
app.use((ctx, next) => {
  if (!ctx.path.startsWith('/streams/')) return next()
  ctx.respond = false
  streams(ctx.req, ctx.res)
})
app.use(bodyParser())
const parsed = toNodeHandler(hw, { prefix: '/parsed' })
app.use((ctx, next) => {
  if (!ctx.path.startsWith('/parsed/')) return next()
  ctx.respond = false
  parsed(ctx.req, ctx.res)
})
app.use((ctx) => {
  if (ctx.path === '/stats') ctx.body = hw.stats()
})
app.listen(Number(process.env.PORT))
