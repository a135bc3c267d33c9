export default {
  title: 'h3 1',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
