export default {
  title: 'Elysia on Bun',
  runtime: 'bun',
  start: ['bun', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
