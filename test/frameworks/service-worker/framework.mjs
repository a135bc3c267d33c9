import assert from 'node:assert/strict'
import { endsWithItsWait } from '../harness/checks.mjs'

export default {
  dependencies: { esbuild: '0.27.7', 'playwright-core': '1.65.1' },
  title: 'service worker in Chromium',
  parsed: false,
  // The binary of esbuild is an optional dependency.
  install: ['--ignore-scripts'],
  prepare: [['npx', 'esbuild', 'service-worker.js', '--bundle', '--outfile=bundle.js']],
  limitations: {
    // Chromium does not tell a service worker that a page has abandoned a request without a response.
    'cancelled long poll': endsWithItsWait,
    // The page receives the response as it is: nothing goes through a network.
    compression: async (app) => {
      const stream = await app.createStream('compressed')
      const body = 'compressible '.repeat(1_000)
      await (await app.append(stream, body)).bytes()
      const headers = { 'accept-encoding': 'gzip' }
      const response = await app.request(`/v1/streams/${stream}/records?seq_num=0`, { headers })
      assert.equal(response.headers['content-encoding'], undefined)
      assert.equal((await response.json()).records[0].body, body)
    },
  },
}
