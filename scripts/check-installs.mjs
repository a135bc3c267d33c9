// `npm run check:installs` packs the package, installs it in new projects with each package manager and each
// runtime, and follows the README there: the first program and the server. Then it checks the types of all
// declarations and of the programs in the docs.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { assertInstalled, build, inProject, pack, RUNTIMES } from './project.mjs'

const NODES = ['20.20.2', '22.23.3', RUNTIMES.node]
const TYPESCRIPTS = ['5.4.5', '5.9.3', '7.0.2']
/** Their declarations need the types of Node, or of a framework. */
const ENTRIES_WITH_TYPES = ['./node', './react', './solid', './vue']

assertInstalled()
build()
const directory = mkdtempSync(join(tmpdir(), 'headwater-installs-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
const readme = readFileSync(inProject('README.md'), 'utf8')
const [, program, printed] = /^```ts\n([\s\S]*?)^```[\s\S]*?^```text\n([\s\S]*?)^```/m.exec(readme)
const tarball = await pack(directory)
const tools = project('tools')
run(tools, 'npm', [
  ...['install', '--no-save', 'pnpm@10.34.8', '@yarnpkg/cli-dist@4.18.1'],
  ...[`bun@${RUNTIMES.bun}`, `deno@${RUNTIMES.deno}`],
  ...NODES.map((version) => `node-${version}@npm:node@${version}`),
  ...TYPESCRIPTS.map((version) => `typescript-${version}@npm:typescript@${version}`),
])
const tool = (name) => join(tools, 'node_modules', '.bin', name)

await checkPackageManagers()
await checkRuntimes()
checkTypes()

async function checkPackageManagers() {
  // Yarn and Bun do not read the configuration of npm.
  const registry = run(tools, 'npm', ['config', 'get', 'registry']).trim()
  const { protocol, hostname } = new URL(registry)
  const yarn = {
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_ENABLE_GLOBAL_CACHE: 'false',
    YARN_ENABLE_TELEMETRY: 'false',
    YARN_ENABLE_IMMUTABLE_INSTALLS: 'false',
    ...(protocol === 'http:' && { YARN_UNSAFE_HTTP_WHITELIST: hostname }),
  }
  const managers = [
    ['pnpm', [tool('pnpm'), 'install'], ['node', 'hello.mjs'], {}],
    ["yarn Plug'n'Play", [tool('yarn'), 'install'], [tool('yarn'), 'node', 'hello.mjs'], yarn],
    ['bun', [tool('bun'), 'install'], ['node', 'hello.mjs'], { BUN_CONFIG_REGISTRY: registry }],
  ]
  for (const [name, install, start, env] of managers) {
    await attempt(`installed with ${name}`, () => {
      const files = { 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: pnp\n', 'hello.mjs': program }
      const path = project(`manager-${name.replaceAll(/\W/g, '')}`, files, { headwater: `file:${tarball}` })
      run(path, ...split(install), env)
      expectPrinted(run(path, ...split(start), env))
    })
  }
}

async function checkRuntimes() {
  const path = project('runtimes', { 'hello.mjs': program }, { headwater: `file:${tarball}` })
  run(path, 'npm', ['install'])
  const cli = join(path, 'node_modules', 'headwater', 'dist', 'cli.js')
  const node = (version) => join(tools, 'node_modules', `node-${version}`, 'bin', 'node')
  const runtimes = [
    ...NODES.map((version) => [`Node ${version}`, [node(version)]]),
    ['Bun', [tool('bun'), 'run', '--bun']],
    ['Deno', [tool('deno'), 'run', '--allow-all', '--node-modules-dir=manual']],
  ]
  for (const [name, command] of runtimes) {
    await attempt(name, async () => {
      const env = { PATH: `${dirname(command[0])}${delimiter}${process.env.PATH}` }
      expectPrinted(run(path, ...split([...command, 'hello.mjs']), env))
      const serve = [...command, cli, 'serve', '--storage', 'memory', '--no-auth', '--port', '0']
      await whileServing(path, serve, /^headwater listens on (\S+)$/, async (address) => {
        const { openapi } = await (await fetch(`${address}/openapi.json`)).json()
        if (openapi !== '3.1.0') throw new Error(`the server said ${openapi}`)
      })
    })
  }
}

function checkTypes() {
  const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
  const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
  const importing = (names) =>
    names.map((entry, i) => `export * as entry${i} from 'headwater${entry.slice(1)}'\n`).join('')
  const options = {
    target: 'ES2022',
    lib: ['ES2022', 'DOM'],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  }
  const bundler = { ...options, module: 'ESNext', moduleResolution: 'Bundler' }
  const nodenext = { ...options, module: 'NodeNext' }
  const examples = documentedExamples()
  const withNode = { types: ['node'] }
  // Of the packages that examples use: the published client has errors with TypeScript 7.
  const examplesUse = { ...withNode, skipLibCheck: true }
  const CONFIGURATIONS = {
    'declarations, in a browser project': [
      { ...bundler, types: [] },
      { 'browser.ts': importing(entries.filter((entry) => !ENTRIES_WITH_TYPES.includes(entry))) },
    ],
    'declarations, all': [{ ...nodenext, ...withNode }, { 'all.ts': importing(entries) }],
    'examples, resolved as by a bundler': [{ ...bundler, ...examplesUse }, examples],
    'examples, resolved as by Node': [{ ...nodenext, ...examplesUse }, examples],
  }
  const path = project('types')
  run(path, 'npm', [
    ...['install', '--no-save', tarball, '@types/node@22.20.7', '@types/react@19.3.0', 'react@19.3.1'],
    // The declarations of later versions of Solid need a later version of TypeScript.
    ...['solid-js@1.8.23', 'vue@3.5.45', 'libsodium-wrappers@0.8.4', '@electric-sql/pglite@0.5.16'],
    ...['@s2-dev/streamstore@0.27.0', 'yjs@13.6.33'],
  ])
  for (const [name, [compilerOptions, files]] of Object.entries(CONFIGURATIONS)) {
    const config = join(path, 'tsconfig.json')
    writeFileSync(config, JSON.stringify({ compilerOptions, files: Object.keys(files) }))
    for (const [file, contents] of Object.entries(files)) writeFileSync(join(path, file), contents)
    for (const version of TYPESCRIPTS) {
      attempt(`${name}: TypeScript ${version}`, () => {
        const compiler = join(tools, 'node_modules', `typescript-${version}`, 'bin', 'tsc')
        run(path, process.execPath, [compiler, '--project', config])
      })
    }
  }
}

/** The blocks marked `ts` of the README and `docs`, which are whole programs. */
function documentedExamples() {
  const docs = readdirSync(inProject('docs')).filter((name) => name.endsWith('.md'))
  const examples = {}
  for (const page of ['README.md', ...docs.map((name) => `docs/${name}`)]) {
    const text = readFileSync(inProject(page), 'utf8')
    for (const { index, 1: code } of text.matchAll(/^```ts(?: tab\.ts)?\n([\s\S]*?)^```$/gm)) {
      const line = text.slice(0, index).split('\n').length
      examples[`${page.replace(/\W/g, '-')}-${line}.ts`] = code
    }
  }
  return examples
}

/** Prints whether an action succeeds. */
async function attempt(what, action) {
  try {
    await action()
    console.log(`ok: ${what}`)
  } catch (error) {
    process.exitCode = 1
    console.log(`failed: ${what}\n${error.message}`)
  }
}

/** Makes a directory with these files besides a package.json. Returns its path. */
function project(name, files = {}, dependencies = {}) {
  const path = join(directory, name)
  mkdirSync(path)
  const all = { 'package.json': JSON.stringify({ private: true, type: 'module', dependencies }), ...files }
  for (const [file, contents] of Object.entries(all)) writeFileSync(join(path, file), contents)
  return path
}

/** Returns the output; throws it if the command fails. */
function run(cwd, command, args, env) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    // On Windows, package managers are scripts, which only a shell can start.
    shell: process.platform === 'win32',
  })
  if (status !== 0) throw new Error(error?.message ?? `${stdout}${stderr}`)
  return stdout
}

function split([command, ...args]) {
  return [command, args]
}

function expectPrinted(output) {
  if (output !== printed) throw new Error(`the first program printed ${output} instead of ${printed}`)
}

/** Starts a server, and runs `work` with the address that it prints. */
async function whileServing(cwd, [command, ...args], pattern, work) {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const lines = []
  try {
    const listening = new Promise((resolve, reject) => {
      for (const stream of [child.stdout, child.stderr]) {
        createInterface(stream).on('line', (line) => {
          lines.push(line)
          const [, address] = pattern.exec(line) ?? []
          if (address !== undefined) resolve(address)
        })
      }
      child.once('error', reject)
      child.once('exit', () => reject(new Error(`the server did not start:\n${lines.join('\n')}`)))
    })
    await work(await listening)
  } finally {
    child.kill()
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}
