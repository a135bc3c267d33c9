import { type ChildProcess, spawn } from 'node:child_process'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

const NAMES = ['worker-1', 'worker-2']

/**
 * Opens the queue in the directory `data`, which the handler serves below `/v1`, and below `/api/workers` the
 * processes of two workers. It asks for no token, because Vite listens on this machine only.
 */
export async function startServer() {
  const hw = await open({ storage: filesystem('data') })
  await hw.ensureBasin('work-queue')
  await hw.basin('work-queue').ensureStream('events')
  const streams = toNodeHandler(hw, { auth: 'none' })
  const workers = new Map<string, ChildProcess>()
  let url = ''

  function start(name: string) {
    const worker = spawn(process.execPath, ['--import', 'tsx', 'worker.ts', url, name], { stdio: 'inherit' })
    workers.set(name, worker)
    worker.once('exit', () => {
      if (workers.get(name) === worker) workers.delete(name)
    })
  }

  /** `GET /api/workers`: those that run. `POST /api/workers/NAME/start` and `…/kill`. */
  function handler(request: IncomingMessage, response: ServerResponse, next: () => void) {
    const [, name = '', action] = /^\/api\/workers(?:\/([\w-]+)\/(start|kill))?$/.exec(request.url!) ?? []
    if (request.method === 'POST' && NAMES.includes(name)) {
      // As a crash would: without a chance to finish.
      if (action === 'kill') workers.get(name)?.kill('SIGKILL')
      else if (!workers.has(name)) start(name)
      response.writeHead(204).end()
    } else if (request.method === 'GET' && request.url === '/api/workers') {
      const running = NAMES.map((each) => ({ name: each, isRunning: workers.has(each) }))
      response.setHeader('content-type', 'application/json').end(JSON.stringify(running))
    } else streams(request, response, next)
  }

  function killAll() {
    for (const worker of workers.values()) worker.kill('SIGKILL')
  }
  process.once('exit', killAll)

  return {
    handler,
    startWorkers(address: string) {
      url = address
      for (const name of NAMES) start(name)
    },
    async close() {
      killAll()
      await hw.close()
    },
  }
}
