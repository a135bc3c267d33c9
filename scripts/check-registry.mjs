// `npm run check:registry` rehearses the publication: it publishes the package to a registry on this machine
// (Verdaccio), and installs it from there in new projects of Node 20, 22 and 24, Bun and Deno. In each it
// runs the first example of the README, starts and asks a server, and starts an example that it has written
// into an empty folder.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createInterface } from 'node:readline'
import { assertInstalled, build, ensureBuilt, inProject } from './project.mjs'

const directory = mkdtempSync(join(tmpdir(), 'headwater-registry-'))
const LISTENING = /^headwater listens on (\S+)$/
const EXAMPLE = 'live-logs'
const EXAMPLE_AT = /^live-logs is at (\S+) /
const [, example] = /```ts\n([\s\S]*?)```/.exec(readFileSync(inProject('README.md'), 'utf8'))
const [, printed] = /```text\n([\s\S]*?)```/.exec(readFileSync(inProject('README.md'), 'utf8'))

assertInstalled()
await ensureBuilt()
// `npm run build:js` removes the declarations.
if (!existsSync(inProject('dist', 'types', 'src', 'index.d.ts'))) build()

// Verdaccio needs a newer Node than the package.
const tools = install('tools', ['verdaccio@6.10.4', 'bun@1.4.5', 'deno@2.9.6', 'node@24.21.0'])
let server
process.on('exit', () => {
  server?.kill()
  rmSync(directory, { recursive: true, force: true })
})
const address = await startRegistry(writeConfig())
const registry = `http://${address}/`

const npmrc = join(directory, 'npmrc')
writeFileSync(npmrc, `registry=${registry}\n//${address}/:_authToken=none\n`)
/** Caches of this machine know another package of the name. */
const env = {
  ...process.env,
  NPM_CONFIG_USERCONFIG: npmrc,
  NPM_CONFIG_REGISTRY: registry,
  npm_config_registry: registry,
  npm_config_cache: join(directory, 'npm-cache'),
  BUN_INSTALL_CACHE_DIR: join(directory, 'bun-cache'),
  DENO_DIR: join(directory, 'deno-cache'),
}
run(inProject('.'), 'npm', ['publish', '--ignore-scripts', '--provenance=false'], env)
console.log('ok: published')

let failed = 0
for (const version of ['20.20.2', '22.23.3', '24.21.0']) {
  const node = install(`node-${version}`, [`node@${version}`])('node')
  const path = { ...env, PATH: `${join(node, '..')}${delimiter}${process.env.PATH}` }
  await attempt(`Node ${version}`, path, {
    add: ['npm', 'install', 'headwater'],
    run: ['node', 'hello.mjs'],
    serve: ['npx', 'headwater', 'serve'],
    init: ['npx', 'headwater', 'init'],
    install: ['npm', 'install', '--no-audit', '--no-fund'],
    start: ['npm', 'start'],
  })
}
await attempt('Bun', env, {
  add: [tools('bun'), 'add', 'headwater'],
  run: [tools('bun'), 'run', 'hello.mjs'],
  serve: [tools('bun'), 'x', '--bun', 'headwater', 'serve'],
  init: [tools('bun'), 'x', '--bun', 'headwater', 'init'],
  install: [tools('bun'), 'install'],
  start: [tools('bun'), 'run', '--bun', 'start'],
})
await attempt('Deno', env, {
  // By default Deno takes no version that is younger than a day.
  add: [tools('deno'), 'add', '--minimum-dependency-age=0', 'npm:headwater'],
  run: [tools('deno'), 'run', '--allow-all', 'hello.mjs'],
  serve: [tools('deno'), 'run', '--allow-all', 'npm:headwater', 'serve'],
  init: [tools('deno'), 'run', '--allow-all', 'npm:headwater', 'init'],
  install: [tools('deno'), 'install', '--minimum-dependency-age=0', '--allow-scripts=npm:esbuild'],
  start: [tools('deno'), 'run', '--allow-all', 'start.mjs'],
})
process.exit(failed === 0 ? 0 : 1)

/** Follows the README in a new folder. */
async function attempt(title, env, commands) {
  const project = join(directory, title.replace(' ', '-'))
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "private": true }\n')
  writeFileSync(join(project, 'hello.mjs'), example)
  try {
    run(project, ...split(commands.add), env)
    const output = run(project, ...split(commands.run), env)
    if (output !== printed) throw new Error(`the example printed ${JSON.stringify(output)}`)
    await serveOnce(project, commands.serve, env)
    await startExample(project, commands, env)
    console.log(`ok: ${title}`)
  } catch (error) {
    failed++
    console.log(`failed: ${title}\n${error.message}`)
  }
}

async function serveOnce(cwd, command, env) {
  const options = ['--storage', 'memory', '--no-auth', '--port', '0']
  await whileServing(cwd, [...command, ...options], env, LISTENING, async (address) => {
    const health = await (await fetch(`${address}/health`)).text()
    const { openapi } = await (await fetch(`${address}/openapi.json`)).json()
    if (!health.startsWith('OK') || openapi !== '3.1.0') throw new Error(`the server said ${health}`)
  })
}

/** Writes an example into a new folder and starts it there, as the README says. */
async function startExample(project, commands, env) {
  const folder = `${project}-example`
  run(project, ...split([...commands.init, EXAMPLE, folder]), env)
  run(folder, ...split(commands.install), env)
  await whileServing(folder, commands.start, { ...env, PORT: '0' }, EXAMPLE_AT, async (address) => {
    const page = await (await fetch(address)).text()
    if (!page.includes('<!doctype html>')) throw new Error(`the example sent ${page.slice(0, 200)}`)
  })
}

/** Starts a server, and runs `work` with the address that it prints. */
async function whileServing(cwd, [command, ...args], env, printed, work) {
  // A group of its own, because launchers do not pass signals on.
  const child = spawn(command, args, { cwd, env, detached: true, stdio: 'pipe' })
  const lines = []
  try {
    const listening = new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface(stream).on('line', (line) => {
          lines.push(line)
          const [, found] = printed.exec(line) ?? []
          if (found !== undefined) resolve(found)
        })
      }
      child.once('error', reject)
      child.once('exit', () => reject(new Error(`the server did not start:\n${lines.join('\n')}`)))
    })
    await work(await listening)
  } finally {
    const ended = once(child, 'close')
    if (child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
    await ended
  }
}

/** Installs tools from the registry of this machine's configuration. Returns the path of a binary. */
function install(name, packages) {
  const prefix = join(directory, name)
  mkdirSync(prefix)
  // Verdaccio asks for a tag of it that mirrors lack.
  writeFileSync(
    join(prefix, 'package.json'),
    '{ "private": true, "overrides": { "node-fetch": "^2.7.0" } }\n',
  )
  run(prefix, 'npm', ['install', '--no-audit', '--no-fund', ...packages], process.env)
  return (binary) => join(prefix, 'node_modules', '.bin', binary)
}

function writeConfig() {
  const upstream = run(directory, 'npm', ['config', 'get', 'registry'], process.env).trim()
  const config = join(directory, 'verdaccio.yaml')
  writeFileSync(
    config,
    [
      `storage: ${join(directory, 'storage')}`,
      'max_body_size: 100mb',
      'uplinks:',
      `  upstream: { url: ${upstream}, cache: true }`,
      'packages:',
      // Of this machine only: no package of this name is asked for elsewhere.
      '  headwater: { access: $all, publish: $all }',
      '  "**": { access: $all, proxy: upstream }',
      'log: { type: stdout, level: fatal }',
    ].join('\n'),
  )
  return config
}

function split([command, ...args]) {
  return [command, args]
}

/** Returns the output; throws it if the command fails. */
function run(cwd, command, args, env) {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(error?.message ?? `${command} ${args.join(' ')}\n${stdout}${stderr}`)
  return stdout
}

/** Starts Verdaccio, and resolves to its host and port. */
async function startRegistry(config) {
  for (let attempt = 1; ; attempt++) {
    const address = `127.0.0.1:${await freePort()}`
    server = spawn(tools('node'), [tools('verdaccio'), '--config', config, '--listen', address], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    try {
      await untilReady(`http://${address}/-/ping`)
      return address
    } catch (error) {
      // Another program may have got the port before Verdaccio.
      if (attempt === 3) throw error
    }
  }
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port: free } = probe.address()
  probe.close()
  return free
}

async function untilReady(url) {
  while (true) {
    const response = await fetch(url).catch(() => undefined)
    if (response?.ok) return
    if (server.exitCode !== null) throw new Error('the registry did not start')
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
