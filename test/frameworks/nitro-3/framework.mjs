export default {
  title: 'Nitro 3',
  install: ['--ignore-scripts'],
  prepare: [['node_modules/.bin/nitro', 'build']],
  start: ['node', '.output/server/index.mjs'],
  mounts: ['/parsed'],
  bundled: true,
}
