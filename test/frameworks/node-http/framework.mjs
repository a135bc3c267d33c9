export default {
  title: 'node:http',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
