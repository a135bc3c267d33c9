// The backend of the page: its files, the queue as a stream below `/v1`, and two workers that it starts and
// kills on request.
import { fork } from 'node:child_process'
import { join } from 'node:path'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'

const NAMES = ['worker-1', 'worker-2']

/** Serves the directory of the built page on localhost. The queue is in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  await hw.ensureBasin('work-queue')
  await hw.basin('work-queue').ensureStream('events')
  const workers = new Map()

  function start(name) {
    const worker = fork(join(import.meta.dirname, 'worker.mjs'), [server.url, name])
    workers.set(name, worker)
    worker.once('exit', () => {
      if (workers.get(name) === worker) workers.delete(name)
    })
  }

  /** `GET /api/workers`: those that run. `POST /api/workers/NAME/start` and `…/kill`. */
  async function api(request, response) {
    const [, name, action] = /^\/api\/workers\/([\w-]+)\/(start|kill)$/.exec(request.url) ?? []
    if (request.method === 'POST' && NAMES.includes(name)) {
      // As a crash would: without a chance to finish.
      if (action === 'kill') workers.get(name)?.kill('SIGKILL')
      else if (!workers.has(name)) start(name)
      response.writeHead(204).end()
    } else {
      const running = NAMES.map((each) => ({ name: each, isRunning: workers.has(each) }))
      response.setHeader('content-type', 'application/json').end(JSON.stringify(running))
    }
  }

  const server = await serveApp({ hw, files, port, api })
  for (const name of NAMES) start(name)
  const killAll = () => {
    for (const worker of workers.values()) worker.kill('SIGKILL')
  }
  process.once('exit', killAll)
  return {
    url: server.url,
    async close() {
      killAll()
      await server.close()
    },
  }
}
