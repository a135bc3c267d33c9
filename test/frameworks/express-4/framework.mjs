export default {
  title: 'Express 4',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
