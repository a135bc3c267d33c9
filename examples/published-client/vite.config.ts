import { defineConfig } from 'vite'

export default defineConfig({
  // The published client uses HTTP/2 in Node only.
  build: {
    rolldownOptions: {
      external: ['node:http2'],
      input: { page: 'index.html', 'service-worker': 'service-worker.ts' },
      // A service worker has one address, so its name has no hash.
      output: {
        entryFileNames: ({ name }) => (name === 'service-worker' ? '[name].js' : 'assets/[name]-[hash].js'),
      },
    },
  },
})
