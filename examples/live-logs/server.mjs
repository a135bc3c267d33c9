// The backend of the page: its files, and the logs as streams below `/v1`. It also starts a program whose output
// the command line appends, as a shell would: `node app.mjs | headwater append logs/app --url URL`.
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { serveApp } from '../shared/serve-app.mjs'

const HEADWATER = join(
  dirname(fileURLToPath(import.meta.resolve('headwater/package.json'))),
  'dist',
  'cli.js',
)
const DAY_SECONDS = 86_400

/** Serves the directory of the built page on localhost. The logs are in the directory `data`. */
export async function startServer({ files, port, data = join(import.meta.dirname, 'data') }) {
  const hw = await open({ storage: filesystem(data) })
  await hw.ensureBasin('logs', {
    createStreamOnAppend: true,
    defaultStreamConfig: { retentionPolicy: { ageSeconds: 7 * DAY_SECONDS } },
  })
  // The page may follow before the first line is there.
  await hw.basin('logs').ensureStream('app')
  const server = await serveApp({ hw, files, port })
  const stop = appendOutput(server.url)
  return {
    url: server.url,
    async close() {
      stop()
      await server.close()
    },
  }
}

/** Returns a function that ends both processes. */
function appendOutput(url) {
  const app = spawn(process.execPath, [join(import.meta.dirname, 'app.mjs')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const append = spawn(process.execPath, [HEADWATER, 'append', 'logs/app', '--url', url, '--quiet'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  })
  app.stdout.pipe(append.stdin)
  // The command ends with its input.
  append.stdin.on('error', () => {})
  const stop = () => {
    app.kill()
    append.kill()
  }
  process.once('exit', stop)
  return stop
}
