export default {
  dependencies: { fastify: '5.12.8' },
  title: 'Fastify 5',
}
