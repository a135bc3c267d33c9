export default {
  title: 'h3 2',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
