import assert from 'node:assert/strict'
import { RUNTIMES } from '../../scripts/project.mjs'
import { ANSWER } from './harness/chat.mjs'
import { endsWithItsWait } from './harness/checks.mjs'

const bin = (name, ...args) => [`node_modules/.bin/${name}`, ...args]
/** Compilers and bundlers have binaries as optional dependencies. */
const WITH_OPTIONAL = ['--ignore-scripts']
const DENO = ['deno', 'run', '--allow-read', '--allow-write', '--allow-net', '--allow-env', 'server.js']
const WITHOUT_TELEMETRY = { NEXT_TELEMETRY_DISABLED: '1' }
const NEXT = ['next@16.4.6', 'react@19.3.1', 'react-dom@19.3.1']
const CHAT = { env: { ...WITHOUT_TELEMETRY, ANSWER }, chat: true }
const WORKER = {
  packages: ['esbuild@0.27.7', `workerd@${RUNTIMES.workerd}`],
  install: WITH_OPTIONAL,
  start: ['sh', '-c', 'exec npx workerd serve config.capnp --socket-addr "http=127.0.0.1:$PORT"'],
  stats: '/stats',
  limitations: { 'cancelled long poll': endsWithItsWait },
}
const BUNDLED_WORKER = ['npx', 'esbuild', 'main.js', '--bundle', '--format=esm', '--outfile=bundle.js']

/** An app that is built, and runs. */
const built = (title, build, start, more) => ({ title, prepare: [build], start, bundled: true, ...more })
/** An app in a development server. */
const dev = (title, start, more) => ({ title, start, edited: 'engine.js', ...more })

const ANSWERS = { answers: true }

/** The members are described in README.md. */
export const APPS = {
  'node-http': { title: 'node:http' },
  'node-http2': { title: 'node:http2', http2: true, edits: [["'node:http'", "'node:http2'"]] },
  'express-4': { title: 'Express 4', packages: ['express@4.22.3'] },
  'express-5': {
    title: 'Express 5',
    packages: ['compression@1.8.2', 'express@5.3.0'],
    edits: [
      ['import express', "import compression from 'compression'\nimport express"],
      ['const app = express()', 'const app = express()\napp.use(compression())'],
    ],
  },
  fastify: { title: 'Fastify 5', packages: ['fastify@5.12.8'] },
  koa: { title: 'Koa 3', packages: ['koa@3.3.0'] },
  hono: {
    title: 'Hono 4 on Node',
    packages: ['@hono/node-server@2.1.8', 'hono@4.13.19'],
    edits: [
      ['import { Hono }', "import { compress } from 'hono/compress'\nimport { Hono }"],
      ['const app = new Hono()', 'const app = new Hono()\napp.use(compress())'],
    ],
  },
  'hono-deno': {
    title: 'Hono 4 on Deno',
    packages: ['hono@4.13.19'],
    runtime: 'deno',
    start: DENO,
    speaksHttp2: true,
    edits: [
      ["import { serve } from '@hono/node-server'\n", ''],
      [/serve\(.*\)/, "Deno.serve({ port: Number(Deno.env.get('PORT')) }, app.fetch)"],
    ],
  },
  h3: { title: 'h3 2', packages: ['h3@2.0.8'] },
  'h3-1': { title: 'h3 1', packages: ['h3@1.15.11'] },
  next: {
    packages: NEXT,
    install: WITH_OPTIONAL,
    modes: [
      built('Next 16, next start', bin('next', 'build'), bin('next', 'start'), { env: WITHOUT_TELEMETRY }),
      dev('Next 16, next dev', bin('next', 'dev'), { env: WITHOUT_TELEMETRY, bundled: true }),
      dev('Next 16, next dev --webpack', bin('next', 'dev', '--webpack'), {
        env: WITHOUT_TELEMETRY,
        bundled: true,
      }),
    ],
  },
  'next-chat': {
    packages: [
      ...[...NEXT, 'ai@6.0.325', '@ai-sdk/react@3.0.328'],
      ...['@durable-streams/aisdk-transport@0.0.7', '@durable-streams/client@0.2.7'],
    ],
    install: WITH_OPTIONAL,
    replaced: { 'model.js': 'gated-model.js' },
    modes: [
      built('AI chat in Next 16, next start', bin('next', 'build'), bin('next', 'start'), CHAT),
      // It compiles each page when it is first opened, and pages load again with a new server.
      { title: 'AI chat in Next 16, next dev', start: bin('next', 'dev'), reloads: true, ...CHAT },
    ],
  },
  'node-answers': { title: 'Streaming answers, node:http', ...ANSWERS },
  'express-answers': { title: 'Streaming answers, Express 5', packages: ['express@5.3.0'], ...ANSWERS },
  'hono-answers': {
    title: 'Streaming answers, Hono 4',
    packages: ['@hono/node-server@2.1.8', 'hono@4.13.19'],
    ...ANSWERS,
  },
  sveltekit: {
    packages: [
      ...['@sveltejs/adapter-node@6.0.1', '@sveltejs/kit@3.2.0', '@sveltejs/vite-plugin-svelte@7.3.1'],
      ...['svelte@5.57.3', 'vite@8.3.8'],
    ],
    runtime: 'node',
    install: WITH_OPTIONAL,
    modes: [
      built('SvelteKit 3, adapter-node', bin('vite', 'build'), ['node', 'build'], {
        env: { BODY_SIZE_LIMIT: '2M' },
        limitations: { 'empty body': needsContentType },
      }),
      dev('SvelteKit 3, vite dev', bin('vite', 'dev')),
    ],
  },
  'nitro-2': {
    packages: ['nitropack@2.13.6'],
    install: WITH_OPTIONAL,
    modes: [
      built('Nitro 2', bin('nitro', 'build'), ['node', '.output/server/index.mjs']),
      dev('Nitro 2, nitro dev', bin('nitro', 'dev')),
    ],
  },
  'nitro-3': {
    packages: ['nitro@3.0.0'],
    install: WITH_OPTIONAL,
    ...built('Nitro 3', bin('nitro', 'build'), ['node', '.output/server/index.mjs']),
  },
  bun: { title: 'Bun.serve', runtime: 'bun', start: ['bun', 'server.js'] },
  elysia: {
    title: 'Elysia on Bun',
    packages: ['elysia@1.4.30'],
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
