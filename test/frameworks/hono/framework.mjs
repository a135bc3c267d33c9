export default {
  title: 'Hono 4 on Node',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
  compresses: true,
  synced: true,
}
