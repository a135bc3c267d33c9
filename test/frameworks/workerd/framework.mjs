import { endsWithItsWait } from '../harness/checks.mjs'

export default {
  dependencies: { esbuild: '0.27.7', workerd: '1.20261117.1' },
  title: 'workerd',
  // The binary of workerd is an optional dependency.
  install: ['--ignore-scripts'],
  prepare: [['npx', 'esbuild', 'worker.js', '--bundle', '--format=esm', '--outfile=bundle.js']],
  start: ['sh', '-c', 'exec npx workerd serve config.capnp --socket-addr "http=127.0.0.1:$PORT"'],
  // A client that has left is noticed when the next heartbeat is sent.
  leaveMs: 20_000,
  limitations: { 'cancelled long poll': endsWithItsWait },
}
