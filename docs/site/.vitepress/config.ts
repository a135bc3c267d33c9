import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type MarkdownEnv, type MarkdownRenderer } from 'vitepress'
import { sidebar } from './sidebar.ts'

const project = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))
const { description, repository, version } = JSON.parse(readFileSync(project('package.json'), 'utf8'))

const REPOSITORY = repository.url.replace(/^git\+|\.git$/g, '')

/** A build for a folder of a host sets `DOCS_BASE`, such as `/headwater/`. */
const base = process.env.DOCS_BASE ?? '/'

/** The pages of which the search has headings only. */
const REFERENCE = /^(api\/|openapi|changelog)/

/** What the search has of a page: no code, and of the references only what has a heading. */
function searchable(source: string, env: MarkdownEnv, md: MarkdownRenderer): string {
  // Its entries are those of other subpaths.
  if (env.relativePath === 'api/headwater/browser.md') return ''
  const html = md.render(source, env)
  if (!REFERENCE.test(env.relativePath)) return html.replaceAll(/<pre[\s\S]*?<\/pre>/g, '')
  return html.match(/<h[1-3][\s\S]*?<\/h[1-3]>/g)?.join('\n') ?? ''
}

export default defineConfig({
  title: 'headwater',
  description,
  base,
  srcDir: 'pages',
  outDir: 'dist',
  cacheDir: 'cache',
  cleanUrls: false,
  metaChunk: true,
  head: [['link', { rel: 'icon', href: `${base}icon.svg`, type: 'image/svg+xml' }]],
  markdown: { theme: { light: 'github-light', dark: 'github-dark' } },
  themeConfig: {
    search: { provider: 'local', options: { _render: searchable } },
    repository: REPOSITORY,
    socialLinks: [{ icon: 'github', link: REPOSITORY }],
    outline: [2, 3],
    nav: [
      { text: 'Guide', link: '/getting-started' },
      { text: 'Examples', link: '/examples' },
      { text: 'API', link: '/api/' },
      { text: 'Command line', link: '/cli' },
      { text: `v${version}`, link: '/changelog' },
    ],
    sidebar: sidebar(),
    docFooter: { prev: 'Previous', next: 'Next' },
  },
  vite: {
    // The demo runs the built package, as an app does.
    resolve: {
      alias: [
        { find: /^headwater$/, replacement: project('dist/index.js') },
        { find: /^headwater\/(.*)$/, replacement: `${project('dist')}/$1.js` },
      ],
    },
    build: { chunkSizeWarningLimit: 1_000 },
    server: { fs: { allow: [project('.')] } },
  },
})
