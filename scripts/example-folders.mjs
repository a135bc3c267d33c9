// The folders that `headwater init` copies: an example, what it shares with others, a README and a package.json.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { inProject } from './project.mjs'

const SHARED = 'shared'
const MADE = new Set(['dist', 'data', 'node_modules'])
/** They test examples in the repository, beside what they need there. */
const OWN_TESTS = /^(local-first-chat|shared-todo)\/[^/]*\.test\.ts$/
/** An import of a package, or of a part of one, by the first lines of a module. */
const IMPORT = /^(?:import|export) (?:[^'";]*? from )?'((?:@[\w-]+\/)?[\w-]+)(?:\/[^']*)?'/gm
/** A link to what is not in the folder. */
const OUTER_LINK = /\[([^\]]+)\]\((?:\.\.\/|#)[^)]*\)/g
const PORT = 8788

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2022',
    lib: ['ES2023', 'ESNext.Disposable', 'DOM', 'DOM.Iterable', 'DOM.AsyncIterable', 'WebWorker'],
    module: 'ESNext',
    moduleResolution: 'Bundler',
    jsx: 'react-jsx',
    strict: true,
    allowJs: true,
    allowImportingTsExtensions: true,
    noEmit: true,
    skipLibCheck: true,
  },
  exclude: ['dist', 'node_modules'],
}

/** Writes a folder for each example into a directory. */
export async function writeExampleFolders(directory) {
  const readme = await readFile(inProject('examples', 'README.md'), 'utf8')
  const versions = await installedVersions()
  const shared = await filesBelow(SHARED)
  const entries = await readdir(inProject('examples'), { withFileTypes: true })
  for (const { name } of entries.filter((entry) => entry.isDirectory() && entry.name !== SHARED)) {
    const files = await filesBelow(name)
    const isApp = files.has('public/index.html')
    if (isApp) {
      for (const [path, text] of shared) files.set(`${SHARED}/${path}`, text)
      files.set('start.mjs', startScript(name))
    }
    // Leads imports of what the examples share, which is beside them in the repository, to the folder.
    for (const [path, text] of files) {
      const inFolder = (_, quote, up) => (up === '' ? `${quote}./${SHARED}/` : `${quote}${up}${SHARED}/`)
      files.set(path, text.replaceAll(/(['"])\.\.\/((?:\.\.\/)*)shared\//g, inFolder))
    }
    files.set('README.md', readmeOf(files.get('README.md') ?? sectionOf(readme, name), name))
    files.set('package.json', json(packageOf(name, files, isApp, versions)))
    files.set('tsconfig.json', json(TSCONFIG))
    for (const [path, text] of files) {
      await mkdir(dirname(join(directory, name, path)), { recursive: true })
      await writeFile(join(directory, name, path), text)
    }
  }
}

/** The text of the files of an example, by path. */
async function filesBelow(name) {
  const entries = await readdir(inProject('examples', name), { recursive: true, withFileTypes: true })
  const files = new Map()
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name)
    const inExample = path.slice(inProject('examples', name).length + 1).replaceAll('\\', '/')
    if (inExample.split('/').some((part) => MADE.has(part)) || OWN_TESTS.test(`${name}/${inExample}`))
      continue
    files.set(inExample, await readFile(path, 'utf8'))
  }
  return files
}

/** The versions of the packages that the examples were tested with: a later one could break them. */
async function installedVersions() {
  const { version, dependencies, devDependencies } = await readJson('package.json')
  const { packages } = await readJson('package-lock.json')
  const names = Object.keys({ ...dependencies, ...devDependencies })
  const locked = names.map((name) => [name, packages[`node_modules/${name}`]?.version])
  return { ...Object.fromEntries(locked), headwater: version }
}

async function readJson(path) {
  return JSON.parse(await readFile(inProject(path), 'utf8'))
}

function startScript(name) {
  return `// Builds the app and serves it: \`npm start\`, or \`PORT=9000 npm start\`.
import { closeOnSignal, startApp } from './shared/start-app.mjs'

const app = await startApp(import.meta.dirname, Number(process.env.PORT ?? ${PORT}))
closeOnSignal(app)
console.log(\`${name} is at \${app.url} (press Ctrl-C to stop it)\`)
`
}

/** The section of the example in the README of all examples. */
function sectionOf(readme, name) {
  const section = new RegExp(`^## ${name}\\n\\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(readme)
  return `# ${name}\n\n${section?.[1] ?? ''}`
}

/** The text without images and links that lead out of the folder. */
function readmeOf(text, name) {
  return text
    .replaceAll(/^!\[.*\n\n?/gm, '')
    .replaceAll(`](${name}/`, '](')
    .replaceAll(OUTER_LINK, '$1')
    .replace(/^(# .*\n)/, `$1\n\`\`\`sh\nnpm install && npm start\n\`\`\`\n`)
}

function packageOf(name, files, isApp, versions) {
  const modules = [...files].filter(([path]) => /\.(m?[jt]s|tsx)$/.test(path))
  const imported = modules.flatMap(([, text]) => [...text.matchAll(IMPORT)].map(([, module]) => module))
  const needed = [...new Set(imported)].sort().filter((module) => versions[module] !== undefined)
  return {
    name,
    private: true,
    type: 'module',
    scripts: isApp ? { start: 'node start.mjs' } : { start: 'vitest run', test: 'vitest run' },
    dependencies: Object.fromEntries(needed.map((module) => [module, versions[module]])),
  }
}

function json(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
