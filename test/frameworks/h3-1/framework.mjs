export default {
  dependencies: { h3: '1.15.11' },
  title: 'h3 1',
}
