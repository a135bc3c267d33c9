export default {
  dependencies: { compression: '1.8.2', express: '5.3.0' },
  title: 'Express 5',
}
