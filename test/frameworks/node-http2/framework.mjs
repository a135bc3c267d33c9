export default {
  title: 'node:http2',
  http2: true,
}
