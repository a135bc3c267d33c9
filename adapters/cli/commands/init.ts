import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quotePath } from '../errors.ts'

const BUILD = import.meta.dirname

interface InitArguments {
  readonly example: string | undefined
  readonly folder: string | undefined
}

/** `headwater init`: writes an example of the package into a folder of its own. */
async function initCommand({ example, folder = example }: InitArguments, context: CliContext) {
  const examples = await archivedExamples()
  const names = exampleNames(examples)
  if (example === undefined || folder === undefined) {
    for (const name of names) context.print(name)
    return
  }
  if (!names.includes(example)) {
    throw new CliError(2, `unknown example ${quoteArg(example, '')}; expected one of ${names.join(', ')}`)
  }
  await assertEmpty(folder)
  const manifest = JSON.parse(await readFile(join(BUILD, '..', 'package.json'), 'utf8'))
  const files = exampleFolder(examples, example, manifest)
  for (const [path, text] of files) {
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    // Overwrites nothing, even if another program writes into the folder meanwhile.
    await writeFile(target, text, { flag: 'wx' })
  }
  context.print(`Wrote ${files.size} files to ${folder}. Now run`)
  context.print(`  cd ${folder} && npm install && npm start`)
}

/** The files of all examples, which the build has put beside this module. */
async function archivedExamples(): Promise<Map<string, string>> {
  const archive = brotliDecompressSync(await readFile(join(BUILD, 'examples.json.br')))
  return new Map(Object.entries(JSON.parse(archive.toString())))
}

async function assertEmpty(folder: string): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliError(1, `${quotePath(folder)} cannot be used: ${error.message}`)
  })
  // A new repository is as good as empty.
  if (present.some((name) => name !== '.git')) throw new CliError(1, `${quotePath(folder)} is not empty`)
}

export const INIT = command({
  description: 'Write an example into an empty folder, to start from',
  examples: ['headwater init resumable-chat', 'headwater init work-queue ./my-queue'],
  notes: [
    'Without EXAMPLE, prints the names of the examples. FOLDER must be empty or missing. It gets the example,',
    'what that needs, and a package.json; nothing is installed or sent.',
  ],
  definitions: {
    example: { type: 'positional', required: false, description: 'Name of an example' },
    folder: {
      type: 'positional',
      required: false,
      description: 'Folder to write. Default: the name of the example',
    },
  },
  parse: (values): InitArguments => values,
  run: initCommand,
})

const SHARED = 'shared'
/** An import of a package, or of a part of one, by the first lines of a module. */
const IMPORT = /^(?:import|export) (?:[^'";]*? from )?'((?:@[\w-]+\/)?[\w-]+)(?:\/[^']*)?'/gm
/** A link to what is not in the folder. */
const OUTER_LINK = /\[([^\]]+)\]\((?:\.\.\/|#)[^)]*\)/g
const PORT = 8788

/** The package of headwater, as far as a folder needs it. */
interface PackageManifest {
  readonly version: string
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** Files by path, which has slashes. */
type Files = ReadonlyMap<string, string>

/** The names of the examples, sorted, of the files below `examples` in the repository. */
function exampleNames(examples: Files): string[] {
  const directories = [...examples.keys()].flatMap((path) =>
    path.includes('/') ? [path.slice(0, path.indexOf('/'))] : [],
  )
  return [...new Set(directories)].filter((name) => name !== SHARED).sort()
}

/**
 * The files of a folder that holds one example and all that it needs. Its README is the section of the
 * example in that of all examples.
 */
function exampleFolder(examples: Files, name: string, manifest: PackageManifest): Map<string, string> {
  const own = filesBelow(examples, name)
  const isApp = own.has('public/index.html')
  const files = new Map(own)
  if (isApp) {
    for (const [path, text] of filesBelow(examples, SHARED)) files.set(`${SHARED}/${path}`, text)
    files.set('start.mjs', startScript(name))
  }
  for (const [path, text] of files) files.set(path, withinFolder(text))
  const readme = own.get('README.md') ?? sectionOf(examples.get('README.md') ?? '', name)
  files.set('README.md', readmeOf(readme, name))
  files.set('package.json', json(packageOf(name, [...files], isApp, manifest)))
  files.set('tsconfig.json', json(TSCONFIG))
  files.set('.gitignore', '/node_modules\n/dist\n/data\n')
  return files
}

function filesBelow(examples: Files, directory: string): Map<string, string> {
  const prefix = `${directory}/`
  return new Map(
    [...examples].flatMap(([path, text]) =>
      path.startsWith(prefix) ? [[path.slice(prefix.length), text] as const] : [],
    ),
  )
}

/** Leads imports of what the examples share, which is beside them in the repository, to the folder. */
function withinFolder(text: string): string {
  return text.replaceAll(/(['"])\.\.\/((?:\.\.\/)*)shared\//g, (_, quote, up) =>
    up === '' ? `${quote}./shared/` : `${quote}${up}shared/`,
  )
}

function startScript(name: string): string {
  return `// Builds the app and serves it: \`npm start\`, or \`PORT=9000 npm start\`.
import { closeOnSignal, startApp } from './shared/start-app.mjs'

const app = await startApp(import.meta.dirname, Number(process.env.PORT ?? ${PORT}))
closeOnSignal(app)
console.log(\`${name} is at \${app.url} (press Ctrl-C to stop it)\`)
`
}

function sectionOf(readme: string, name: string): string {
  const [, section = ''] =
    new RegExp(`^## ${name}\\n\\n([\\s\\S]*?)(?=^## |$(?![\\s\\S]))`, 'm').exec(readme) ?? []
  return `# ${name}\n\n${section}`
}

/** The text without images and links that lead out of the folder. */
function readmeOf(text: string, name: string): string {
  return text
    .replaceAll(/^!\[.*\n\n?/gm, '')
    .replaceAll(`](${name}/`, '](')
    .replaceAll(OUTER_LINK, '$1')
    .replace(/^(# .*\n)/, `$1\n\`\`\`sh\nnpm install && npm start\n\`\`\`\n`)
}

function packageOf(
  name: string,
  files: readonly (readonly [string, string])[],
  isApp: boolean,
  { version, dependencies, devDependencies }: PackageManifest,
) {
  const imported = files.flatMap(([path, text]) =>
    /\.(m?[jt]s|tsx)$/.test(path) ? [...text.matchAll(IMPORT)].map(([, module]) => module!) : [],
  )
  const versions: Record<string, string | undefined> = {
    ...devDependencies,
    ...dependencies,
    headwater: `^${version}`,
  }
  const needed = [...new Set(imported)].sort().flatMap((module) => {
    const range = versions[module]
    return range === undefined ? [] : [[module, range]]
  })
  return {
    name,
    private: true,
    type: 'module',
    scripts: isApp ? { start: 'node start.mjs' } : { start: 'vitest run', test: 'vitest run' },
    dependencies: Object.fromEntries(needed),
  }
}

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

function json(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
