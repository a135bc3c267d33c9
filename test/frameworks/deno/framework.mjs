const app = {
  start: ['deno', 'run', '--allow-read', '--allow-write', '--allow-net', '--allow-env', 'server.js'],
  speaksHttp2: true,
}

export default {
  runtime: 'deno',
  modes: [
    { ...app, title: 'Deno.serve' },
    { ...app, title: 'Deno.serve, HTTP/2', http2: true },
  ],
}
