export default {
  dependencies: { h3: '2.0.8' },
  title: 'h3 2',
}
