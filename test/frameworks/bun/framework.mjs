export default {
  title: 'Bun.serve',
  runtime: 'bun',
  start: ['bun', 'server.js'],
}
