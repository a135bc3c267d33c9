// Runs in workerd: the conformance suite on the storage of a Durable Object, and an engine that the tests of
// `check.mjs` restart.
import { DurableObject } from 'cloudflare:workers'
import { connect } from '../../../dist/client.js'
import { conformanceSuite } from '../../../dist/conformance.js'
import { durableObject } from '../../../dist/durable-object.js'
import { createHandler } from '../../../dist/http.js'
import { open } from '../../../dist/index.js'
import { useClient } from '../client-use.mjs'

export class Conformance extends DurableObject {
  async fetch() {
    const { storage } = this.ctx
    const suite = conformanceSuite({
      manifest: durableObject(storage).manifest,
      make: async () => ({
        storage: durableObject(storage),
        reopen: async () => durableObject(storage),
        dispose: () => storage.deleteAll(),
      }),
    })
    const results = []
    for (const { title, skip, run } of suite) {
      results.push({ title, skip, error: skip === undefined ? await errorOf(run) : undefined })
    }
    return Response.json(results)
  }
}

async function errorOf(run) {
  try {
    await run()
  } catch (error) {
    return String(error.stack ?? error)
  }
}

export class Streams extends DurableObject {
  hw = open({ storage: durableObject(this.ctx.storage) })
  streams = this.hw.then((hw) => createHandler(hw, { auth: 'none', basin: 'my-app' }))

  async fetch(request) {
    const { pathname } = new URL(request.url)
    // Ends the object as an eviction does, and every request in it.
    if (pathname === '/evict') this.ctx.abort('evicted')
    if (pathname === '/open-twice') return this.openTwice()
    return (await this.streams)(request)
  }

  async openTwice() {
    const message = await open({ storage: durableObject(this.ctx.storage) }).catch(
      ({ cause }) => cause.message,
    )
    return Response.json(message)
  }
}

/** Uses a client of a server, or of another object without a socket. */
async function client(url, env) {
  const streams = env.STREAMS.getByName('of-a-client')
  const options = url === null ? { url: 'http://localhost', fetch: (sent) => streams.fetch(sent) } : { url }
  const hw = await connect(options)
  try {
    return Response.json(await useClient(hw))
  } finally {
    await hw.close()
  }
}

export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (pathname === '/client') return client(new URL(request.url).searchParams.get('url'), env)
    const namespace = pathname === '/conformance' ? env.CONFORMANCE : env.STREAMS
    return namespace.getByName('one').fetch(request)
  },
}
