export default {
  dependencies: { nitro: '3.0.0' },
  title: 'Nitro 3',
  install: ['--ignore-scripts'],
  prepare: [['node_modules/.bin/nitro', 'build']],
  start: ['node', '.output/server/index.mjs'],
  bundled: true,
}
