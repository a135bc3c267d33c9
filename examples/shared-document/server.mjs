// The backend of the app: its files, and the streams of its documents. The Yjs server of the provider's package
// is between them and the pages: it stores updates in the streams, and makes snapshots.
import { request as requestTo } from 'node:http'
import { join } from 'node:path'
import { YjsServer } from '@durable-streams/y-durable-streams/server'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'

/** Serves the directory of the built app on localhost. The documents are in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  let yjs
  const server = await serveApp({
    hw,
    files,
    port,
    api: (request, response) => forward(yjs.url, request, response),
    apiPath: '/v1/yjs/',
    // The Yjs server forwards the origin of the pages.
    cors: [`http://localhost:${port}`],
    durableStreams: { basin: 'documents' },
  })
  yjs = new YjsServer({ port: 0, dsServerUrl: server.url })
  await yjs.start()
  return {
    url: server.url,
    async close() {
      await yjs.stop()
      await server.close()
    },
  }
}

/** Forwards a request to another server, so that pages have one origin: they may read all headers of it. */
function forward(origin, request, response) {
  const { method, headers, url } = request
  const forwarded = requestTo(new URL(url, origin), { method, headers }, (reply) => {
    response.writeHead(reply.statusCode, reply.headers)
    reply.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  response.on('close', () => forwarded.destroy())
  request.pipe(forwarded)
}
