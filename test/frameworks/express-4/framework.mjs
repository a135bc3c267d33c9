export default {
  dependencies: { express: '4.22.3' },
  title: 'Express 4',
}
