import assert from 'node:assert/strict'
import { ANSWER } from './harness/chat.mjs'
import { endsWithItsWait } from './harness/checks.mjs'

const bin = (name, ...args) => [`node_modules/.bin/${name}`, ...args]
/** Compilers and bundlers have binaries as optional dependencies. */
const WITH_OPTIONAL = ['--ignore-scripts']
const DENO = ['deno', 'run', '--allow-read', '--allow-write', '--allow-net', '--allow-env', 'server.js']
const WITHOUT_TELEMETRY = { NEXT_TELEMETRY_DISABLED: '1' }
const NEXT = { next: '16.4.6', react: '19.3.1', 'react-dom': '19.3.1' }
const NEXT_APP = { env: WITHOUT_TELEMETRY, bundled: true }
const CHAT = { env: { ...WITHOUT_TELEMETRY, ANSWER }, chat: true }
const WORKER = {
  dependencies: { esbuild: '0.27.7', workerd: '1.20261117.1' },
  install: WITH_OPTIONAL,
  start: ['sh', '-c', 'exec npx workerd serve config.capnp --socket-addr "http=127.0.0.1:$PORT"'],
  stats: '/stats',
  // A client that has left is noticed when the next heartbeat is sent.
  leaveMs: 20_000,
  limitations: { 'cancelled long poll': endsWithItsWait },
}
const BUNDLED_WORKER = ['npx', 'esbuild', 'main.js', '--bundle', '--format=esm', '--outfile=bundle.js']

/** The members are described in README.md. */
export const APPS = {
  'node-http': { title: 'node:http' },
  'node-http2': { title: 'node:http2', http2: true, edits: [["'node:http'", "'node:http2'"]] },
  'express-4': { title: 'Express 4', dependencies: { express: '4.22.3' } },
  'express-5': {
    title: 'Express 5',
    dependencies: { compression: '1.8.2', express: '5.3.0' },
    edits: [
      ['import express', "import compression from 'compression'\nimport express"],
      ['const app = express()', 'const app = express()\napp.use(compression())'],
    ],
  },
  fastify: { title: 'Fastify 5', dependencies: { fastify: '5.12.8' } },
  koa: { title: 'Koa 3', dependencies: { koa: '3.3.0' } },
  hono: {
    title: 'Hono 4 on Node',
    dependencies: { '@hono/node-server': '2.1.8', hono: '4.13.19' },
    edits: [
      ['import { Hono }', "import { compress } from 'hono/compress'\nimport { Hono }"],
      ['const app = new Hono()', 'const app = new Hono()\napp.use(compress())'],
    ],
  },
  'hono-deno': {
    title: 'Hono 4 on Deno',
    dependencies: { hono: '4.13.19' },
    runtime: 'deno',
    start: DENO,
    speaksHttp2: true,
    edits: [
      ["import { serve } from '@hono/node-server'\n", ''],
      [/serve\(.*\)/, "Deno.serve({ port: Number(Deno.env.get('PORT')) }, app.fetch)"],
    ],
  },
  h3: { title: 'h3 2', dependencies: { h3: '2.0.8' } },
  'h3-1': { title: 'h3 1', dependencies: { h3: '1.15.11' } },
  next: {
    dependencies: NEXT,
    install: WITH_OPTIONAL,
    modes: [
      {
        title: 'Next 16, next start',
        prepare: [bin('next', 'build')],
        start: bin('next', 'start'),
        ...NEXT_APP,
      },
      { title: 'Next 16, next dev', start: bin('next', 'dev'), ...NEXT_APP, edited: 'engine.js' },
      {
        title: 'Next 16, next dev --webpack',
        start: bin('next', 'dev', '--webpack'),
        ...NEXT_APP,
        edited: 'engine.js',
      },
    ],
  },
  'next-chat': {
    dependencies: {
      ...NEXT,
      '@ai-sdk/react': '3.0.328',
      '@durable-streams/aisdk-transport': '0.0.7',
      '@durable-streams/client': '0.2.7',
      ai: '6.0.325',
    },
    install: WITH_OPTIONAL,
    replaced: { 'model.js': 'gated-model.js' },
    modes: [
      {
        title: 'AI chat in Next 16, next start',
        prepare: [bin('next', 'build')],
        start: bin('next', 'start'),
        ...CHAT,
      },
      // It compiles each page when it is first opened, and pages load again with a new server.
      { title: 'AI chat in Next 16, next dev', start: bin('next', 'dev'), reloads: true, ...CHAT },
    ],
  },
  sveltekit: {
    dependencies: {
      '@sveltejs/adapter-node': '6.0.1',
      '@sveltejs/kit': '3.2.0',
      '@sveltejs/vite-plugin-svelte': '7.3.1',
      svelte: '5.57.3',
      vite: '8.3.8',
    },
    runtime: 'node',
    install: WITH_OPTIONAL,
    modes: [
      {
        title: 'SvelteKit 3, adapter-node',
        prepare: [bin('vite', 'build')],
        start: ['node', 'build'],
        env: { BODY_SIZE_LIMIT: '2M' },
        bundled: true,
        limitations: { 'empty body': needsContentType },
      },
      { title: 'SvelteKit 3, vite dev', start: bin('vite', 'dev'), edited: 'engine.js' },
    ],
  },
  'nitro-2': {
    dependencies: { nitropack: '2.13.6' },
    install: WITH_OPTIONAL,
    modes: [
      {
        title: 'Nitro 2',
        prepare: [bin('nitro', 'build')],
        start: ['node', '.output/server/index.mjs'],
        bundled: true,
      },
      { title: 'Nitro 2, nitro dev', start: bin('nitro', 'dev'), edited: 'engine.js' },
    ],
  },
  'nitro-3': {
    title: 'Nitro 3',
    dependencies: { nitro: '3.0.0' },
    install: WITH_OPTIONAL,
    prepare: [bin('nitro', 'build')],
    start: ['node', '.output/server/index.mjs'],
    bundled: true,
  },
  bun: { title: 'Bun.serve', runtime: 'bun', start: ['bun', 'server.js'] },
  elysia: {
    title: 'Elysia on Bun',
    dependencies: { elysia: '1.4.30' },
    runtime: 'bun',
    start: ['bun', 'server.js'],
  },
  deno: {
    runtime: 'deno',
    modes: [
      { title: 'Deno.serve', start: DENO, speaksHttp2: true },
      { title: 'Deno.serve, HTTP/2', start: DENO, http2: true },
    ],
  },
  'durable-object': {
    ...WORKER,
    title: 'Durable Object',
    prepare: [
      [
        ...BUNDLED_WORKER,
        '--external:cloudflare:*',
        '--alias:headwater/durable-object=./faulty-durable-object.js',
      ],
      ['mkdir', '-p', 'objects'],
    ],
  },
  workerd: { ...WORKER, title: 'workerd', prepare: [BUNDLED_WORKER] },
}

async function needsContentType(app) {
  const path = `/v1/streams/${await app.createStream('kept')}`
  assert.equal((await app.request(path, { method: 'DELETE' })).status, 403)
  const headers = { 'content-type': 'application/json' }
  assert.equal((await app.request(path, { method: 'DELETE', headers })).status, 202)
}
