export default {
  title: 'node:http2',
  http2: true,
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
