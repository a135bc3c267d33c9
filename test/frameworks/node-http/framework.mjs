export default {
  title: 'node:http',
}
