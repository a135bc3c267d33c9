export default {
  title: 'Express 5',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
  compresses: true,
}
