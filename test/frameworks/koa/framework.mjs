export default {
  dependencies: { koa: '3.3.0', 'koa-bodyparser': '4.4.1' },
  title: 'Koa 3',
}
