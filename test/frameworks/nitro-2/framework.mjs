const nitro = (...args) => ['node_modules/.bin/nitro', ...args]

export default {
  install: ['--ignore-scripts'],
  modes: [
    {
      title: 'Nitro 2',
      prepare: [nitro('build')],
      start: ['node', '.output/server/index.mjs'],
      mounts: ['/parsed'],
      bundled: true,
    },
    { title: 'Nitro 2, nitro dev', start: nitro('dev'), mounts: ['/parsed'], edited: 'engine.js' },
  ],
}
