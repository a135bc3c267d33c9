const nitro = (...args) => ['node_modules/.bin/nitro', ...args]

export default {
  dependencies: { nitropack: '2.13.6' },
  install: ['--ignore-scripts'],
  modes: [
    {
      title: 'Nitro 2',
      prepare: [nitro('build')],
      start: ['node', '.output/server/index.mjs'],
      bundled: true,
    },
    { title: 'Nitro 2, nitro dev', start: nitro('dev'), edited: 'engine.js' },
  ],
}
