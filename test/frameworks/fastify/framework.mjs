export default {
  title: 'Fastify 5',
  start: ['node', 'server.js'],
  mounts: ['/parsed', '/uncompressed'],
}
