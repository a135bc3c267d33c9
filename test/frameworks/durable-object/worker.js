import { DurableObject } from 'cloudflare:workers'
import { open } from 'headwater'
import { durableObject } from 'headwater/durable-object'
import { createHandler } from 'headwater/http'

export class Streams extends DurableObject {
  hw = open({ storage: durableObject(this.ctx.storage) })
  streams = this.hw.then((hw) => createHandler(hw, { prefix: '/streams' }))
  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/stats') return this.stats(await this.hw)
    return (await this.streams)(request)
  }

  async stats(hw) {
    this.rootToken ??= await hw.createRootToken()
    console.log(`root token: ${this.rootToken}`)
    return Response.json(hw.stats())
  }
}

export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/streams/')) return env.STREAMS.getByName('streams').fetch(request)
    if (pathname === '/stats') return env.STREAMS.getByName('streams').fetch(request)
    return new Response('not found', { status: 404 })
  },
}
