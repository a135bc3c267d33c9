export default {
  title: 'Koa 3',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
