import { endsWithItsWait } from '../harness/checks.mjs'

const BUILD = ['esbuild', 'worker.js', '--bundle', '--format=esm', '--outfile=bundle.js']
const EXTERNAL = ['--external:cloudflare:*', '--alias:headwater/durable-object=./faulty-durable-object.js']

export default {
  dependencies: { esbuild: '0.27.7', workerd: '1.20261117.1' },
  title: 'Durable Object',
  // The binary of workerd is an optional dependency.
  install: ['--ignore-scripts'],
  prepare: [
    ['npx', ...BUILD, ...EXTERNAL],
    ['mkdir', '-p', 'objects'],
  ],
  start: ['sh', '-c', 'exec npx workerd serve config.capnp --socket-addr "http=127.0.0.1:$PORT"'],
  // A client that has left is noticed when the next heartbeat is sent.
  leaveMs: 20_000,
  parsed: false,
  limitations: { 'cancelled long poll': endsWithItsWait },
}
