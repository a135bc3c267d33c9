import { spawn } from 'node:child_process'
import { open } from 'headwater'
import { filesystem } from 'headwater/filesystem'
import { toNodeHandler } from 'headwater/node'

const DAY_SECONDS = 86_400

/**
 * Opens the logs in the directory `data`, which the handler serves below `/v1`. It asks for no token, because
 * Vite listens on this machine only.
 */
export async function startServer() {
  const hw = await open({ storage: filesystem('data') })
  await hw.ensureBasin('logs', { defaultStreamConfig: { retentionPolicy: { ageSeconds: 7 * DAY_SECONDS } } })
  // The page may follow before the first line is there.
  await hw.basin('logs').ensureStream('app')
  return { handler: toNodeHandler(hw, { auth: 'none' }), close: () => hw.close() }
}

/**
 * Appends the output of a program, as a shell would: `node program.js | npx headwater append logs/app --url
 * URL`. Returns a function that ends both processes.
 */
export function appendOutput(program: string, url: string): () => void {
  const source = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  const append = spawn(
    process.execPath,
    ['node_modules/headwater/dist/cli.js', 'append', 'logs/app', '--url', url, '--quiet'],
    { stdio: ['pipe', 'ignore', 'inherit'] },
  )
  source.stdout.pipe(append.stdin)
  // The command ends with its input.
  append.stdin.on('error', () => {})
  const stop = () => {
    source.kill()
    // Before it reports that the server is gone.
    append.kill('SIGKILL')
  }
  process.once('exit', stop)
  return stop
}
