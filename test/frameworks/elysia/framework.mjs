export default {
  dependencies: { elysia: '1.4.30' },
  title: 'Elysia on Bun',
  runtime: 'bun',
  start: ['bun', 'server.js'],
}
