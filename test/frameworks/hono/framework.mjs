export default {
  dependencies: { '@hono/node-server': '2.1.8', hono: '4.13.19' },
  title: 'Hono 4 on Node',
  synced: true,
}
