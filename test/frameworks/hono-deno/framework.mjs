export default {
  dependencies: { hono: '4.13.19' },
  title: 'Hono 4 on Deno',
  runtime: 'deno',
  start: ['deno', 'run', '--allow-read', '--allow-write', '--allow-net', '--allow-env', 'server.js'],
  speaksHttp2: true,
}
