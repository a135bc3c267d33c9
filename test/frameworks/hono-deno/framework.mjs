export default {
  title: 'Hono 4 on Deno',
  runtime: 'deno',
  start: ['deno', 'run', '--allow-read', '--allow-write', '--allow-net', '--allow-env', 'server.js'],
  speaksHttp2: true,
  mounts: ['/parsed', '/uncompressed'],
}
