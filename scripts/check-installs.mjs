// `npm run check:installs` packs the package and installs it with each package manager and in TypeScript
// projects. There it runs the first example of the README and type-checks all examples and declarations.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { assertInstalled, build, ensureBuilt, inProject } from './project.mjs'

const TYPESCRIPTS = ['5.4.5', '5.9.3', '7.0.2']
/** Their declarations need the types of Node, or of a framework. */
const ENTRIES_WITH_TYPES = ['./node', './react', './solid', './vue']

const { exports } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
const entries = Object.keys(exports).filter((entry) => entry !== './package.json')
const directory = mkdtempSync(join(tmpdir(), 'headwater-installs-'))
process.on('exit', () => rmSync(directory, { recursive: true, force: true }))

let failed = 0
function report(what, problem) {
  if (problem !== undefined) failed++
  console.log(problem === undefined ? `ok: ${what}` : `failed: ${what}\n${problem}`)
}

/** Returns the output; throws it if the command fails. */
function run(cwd, command, args, env = {}) {
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

function attempt(what, action) {
  try {
    report(what, action())
  } catch (error) {
    report(what, error.message)
  }
}

/** A directory of its own, with these files besides a package.json. */
function project(name, files, dependencies = {}) {
  const path = join(directory, name)
  mkdirSync(path)
  const all = { 'package.json': JSON.stringify({ private: true, type: 'module', dependencies }), ...files }
  for (const [file, contents] of Object.entries(all)) writeFileSync(join(path, file), contents)
  return path
}

assertInstalled()
await ensureBuilt()
// `npm run build:js` removes the declarations.
if (!existsSync(inProject('dist', 'types', 'src', 'index.d.ts'))) build()
const packed = run(inProject('.'), 'npm', ['pack', '--json', '--pack-destination', directory])
const tarball = join(directory, JSON.parse(packed)[0].filename)

const tools = project('tools', {})
run(tools, 'npm', [
  'install',
  '--no-save',
  'pnpm@10.34.8',
  '@yarnpkg/cli-dist@4.18.1',
  'bun@1.4.5',
  ...TYPESCRIPTS.map((version) => `typescript-${version}@npm:typescript@${version}`),
])
const tool = (name) => join(tools, 'node_modules', '.bin', name)

checkPackageManagers()
checkTypes()
process.exitCode = failed === 0 ? 0 : 1

function checkPackageManagers() {
  const [, example, output] = /^```ts\n([\s\S]*?)^```[\s\S]*?^```text\n([\s\S]*?)^```/m.exec(
    readFileSync(inProject('README.md'), 'utf8'),
  )
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
  const managers = {
    npm: { install: ['npm', ['install']], start: [process.execPath, []] },
    pnpm: { install: [tool('pnpm'), ['install']], start: [process.execPath, []] },
    "yarn Plug'n'Play": { install: [tool('yarn'), ['install'], yarn], start: [tool('yarn'), ['node'], yarn] },
    Bun: {
      install: [tool('bun'), ['install'], { BUN_CONFIG_REGISTRY: registry }],
      start: [tool('bun'), ['run']],
    },
  }
  for (const [name, { install, start }] of Object.entries(managers)) {
    attempt(`the first example of the README, installed with ${name}`, () => {
      const files = { 'hello.mjs': example, 'yarn.lock': '', '.yarnrc.yml': 'nodeLinker: pnp\n' }
      const path = project(name.replace(/\W/g, ''), files, { headwater: `file:${tarball}` })
      const [command, args, env] = install
      run(path, command, args, env)
      const [starter, options, startEnv] = start
      const printed = run(path, starter, [...options, 'hello.mjs'], startEnv)
      return printed === output ? undefined : `printed ${printed}instead of ${output}`
    })
  }
}

function checkTypes() {
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
  const path = project('types', {})
  run(path, 'npm', [
    ...['install', '--no-save', tarball, '@types/node@20.19.43', '@types/react@19.3.0', 'react@19.3.1'],
    // The declarations of later versions of Solid need a later version of TypeScript.
    ...['solid-js@1.8.23', 'vue@3.5.45'],
    ...[
      'libsodium-wrappers@0.8.4',
      '@electric-sql/pglite@0.5.16',
      '@s2-dev/streamstore@0.27.0',
      'yjs@13.6.33',
    ],
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
  const pages = [
    'README.md',
    ...readdirSync(inProject('docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
  ]
  const examples = {}
  for (const page of pages) {
    const text = readFileSync(inProject(page), 'utf8')
    for (const { index, 1: code } of text.matchAll(/^```ts(?: tab\.ts)?\n([\s\S]*?)^```$/gm)) {
      const line = text.slice(0, index).split('\n').length
      examples[`${page.replace(/\W/g, '-')}-${line}.ts`] = code
    }
  }
  return examples
}
