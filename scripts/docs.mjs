// `npm run docs` builds the site from `docs`, the docstrings and the changelog, and serves it. With --build,
// it only builds it, into `docs/site/dist`. DOCS_BASE is the path under which a host serves it.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { assertInstalled, ensureBuilt, inProject } from './project.mjs'

assertInstalled()
ensureBuilt({ withDeclarations: true })
const { exports, repository } = JSON.parse(readFileSync(inProject('package.json'), 'utf8'))
const REPOSITORY = repository.url.replace(/^git\+|\.git$/g, '')
const SITE = inProject('docs', 'site')
const PAGES = join(SITE, 'pages')

rmSync(PAGES, { recursive: true, force: true })
mkdirSync(join(PAGES, 'public'), { recursive: true })
const guides = readdirSync(inProject('docs')).filter((name) => name.endsWith('.md'))
for (const name of guides) writePage(pageOf(name.slice(0, -'.md'.length)), `docs/${name}`)
writePage('changelog', 'CHANGELOG.md')
writePage('examples', 'examples/README.md')
for (const name of ['index', 'follower']) cpSync(join(SITE, `${name}.md`), join(PAGES, `${name}.md`))
cpSync(join(SITE, 'icon.svg'), join(PAGES, 'public', 'icon.svg'))
cpSync(inProject('docs', 'images'), join(PAGES, 'images'), { recursive: true })
await writeApi()
const { openApiDocument, openApiPage } = await import('./openapi-page.mjs')
writeFileSync(join(PAGES, 'openapi.md'), openApiPage())
cpSync(inProject('docs', 'openapi.yaml'), join(PAGES, 'public', 'openapi.yaml'))
writeFileSync(join(PAGES, 'public', 'openapi.json'), JSON.stringify(openApiDocument()))
const { llmsIndex, llmsFull } = await import('./llms.mjs')
writeFileSync(join(PAGES, 'public', 'llms.txt'), llmsIndex())
writeFileSync(join(PAGES, 'public', 'llms-full.txt'), llmsFull())

const vitepress = await import('vitepress')
await vitepress.build(SITE)
if (!process.argv.includes('--build')) {
  const port = Number(process.env.PORT ?? 4173)
  await vitepress.serve({ base: process.env.DOCS_BASE ?? '/', root: SITE, port })
}

/** Copies a page. Links to files that the site does not have lead to the repository. */
function writePage(name, source) {
  const text = readFileSync(inProject(source), 'utf8')
  const linked = text
    .replaceAll(/\]\((?!https?:|#)([^)#\s]+)(#[^)\s]+)?\)/g, (_, target, anchor = '') => {
      const path = posix.normalize(posix.join(posix.dirname(source), target))
      return `](${addressOf(path)}${anchor})`
    })
    // Vite takes other paths of elements for packages.
    .replaceAll('src="images/', 'src="./images/')
  const page = join(PAGES, `${name}.md`)
  mkdirSync(dirname(page), { recursive: true })
  writeFileSync(
    page,
    outsideCode(linked, (line) => line.replaceAll('{{', '&#123;{')),
  )
}

/** A server would take a page `README` for the index of its folder. */
function pageOf(name) {
  return name === 'README' ? 'contents' : name
}

/** Where the site has a file of the repository. */
function addressOf(path) {
  const [, guide] = /^docs\/([\w-]+)\.md$/.exec(path) ?? []
  if (guide !== undefined) return `./${pageOf(guide)}.md`
  if (path.startsWith('docs/images/')) return `./${path.slice('docs/'.length)}`
  if (path === 'CHANGELOG.md') return './changelog'
  if (path === 'docs/openapi.yaml') return './openapi'
  if (path === 'examples/README.md') return './examples'
  if (path === 'README.md') return './index'
  return `${REPOSITORY}/blob/main/${path}`
}

function outsideCode(text, change) {
  let isCode = false
  return text
    .split('\n')
    .map((line) => {
      if (/^\s*```/.test(line)) isCode = !isCode
      return isCode ? line : change(line)
    })
    .join('\n')
}

/** Writes a page for each subpath from the docstrings. */
async function writeApi() {
  const { Application, Converter } = await import('typedoc')
  const subpaths = Object.entries(exports).filter(([, { types }]) => types !== undefined)
  const nameOf = (subpath) => `headwater${subpath.slice(1)}`
  // `dist/types/src/index.d.ts` is made from `src/index.ts`, which TypeDoc calls `src`.
  const sources = subpaths.map(([, { types }]) => types.replace('./dist/types/', '').replace('.d.ts', '.ts'))
  const moduleOf = (source) => source.replace(/(\/index)?\.ts$/, '')
  const names = new Map(subpaths.map(([subpath], i) => [moduleOf(sources[i]), nameOf(subpath)]))
  const app = await Application.bootstrapWithPlugins({
    entryPoints: sources.map((path) => inProject(path)),
    basePath: inProject('.'),
    tsconfig: inProject('tsconfig.json'),
    plugin: ['typedoc-plugin-markdown'],
    out: join(PAGES, 'api'),
    router: 'module',
    readme: 'none',
    skipErrorChecking: true,
    excludeInternal: true,
    excludePrivate: true,
    excludeExternals: true,
    disableSources: true,
    hidePageHeader: true,
    hideBreadcrumbs: true,
    entryFileName: 'index',
    fileExtension: '.md',
    useCodeBlocks: true,
    parametersFormat: 'table',
    propertyMembersFormat: 'table',
    typeAliasPropertiesFormat: 'table',
    indexFormat: 'table',
    name: 'API reference',
    logLevel: 'Error',
  })
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name
  })
  const api = await app.convert()
  if (api === undefined) throw new Error('the docstrings cannot be read')
  await app.generateOutputs(api)
  writeFileSync(join(PAGES, 'api', 'pages.json'), JSON.stringify([...names.values()]))
}
