import assert from 'node:assert/strict'

const vite = (...args) => ['node_modules/.bin/vite', ...args]

export default {
  dependencies: {
    '@sveltejs/adapter-node': '6.0.1',
    '@sveltejs/kit': '3.2.0',
    '@sveltejs/vite-plugin-svelte': '7.3.1',
    svelte: '5.57.3',
    vite: '8.3.8',
  },
  runtime: 'node',
  // The bundler's binary is an optional dependency.
  install: ['--ignore-scripts'],
  modes: [
    {
      title: 'SvelteKit 3, adapter-node',
      prepare: [vite('build')],
      start: ['node', 'build'],
      env: { BODY_SIZE_LIMIT: '2M' },
      bundled: true,
      limitations: {
        'empty body': async (app) => {
          const path = `/v1/streams/${await app.createStream('kept')}`
          assert.equal((await app.request(path, { method: 'DELETE' })).status, 403)
          const headers = { 'content-type': 'application/json' }
          assert.equal((await app.request(path, { method: 'DELETE', headers })).status, 202)
        },
      },
    },
    { title: 'SvelteKit 3, vite dev', start: vite('dev'), edited: 'engine.js' },
  ],
}
