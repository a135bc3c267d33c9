// The pages of `docs` for language models: an index of them, and all of them in one text.
import { readFileSync } from 'node:fs'
import { inProject } from './project.mjs'

const readme = readFileSync(inProject('README.md'), 'utf8')
const [, title, summary] = /^# (\w+)\n\n([\s\S]*?)\n\n/.exec(readme)
const LINK = /\[([^\]]+)\]\((docs\/[\w-]+\.md)\)/g

/** The groups of the table "Documentation" in the README: the title of each, and its pages. */
function groups() {
  const table = readme.slice(readme.indexOf('## Documentation'))
  return [...table.matchAll(/^\| ([A-Z]\w+) \| (.*) \|$/gm)].flatMap(([, group, links]) => {
    const pages = [...links.matchAll(LINK)].map(([, name, path]) => ({ name, path }))
    return pages.length === 0 ? [] : [{ group, pages }]
  })
}

/** The first paragraph of a page, on one line. */
function summaryOf(path) {
  const text = readFileSync(inProject(path), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
  const paragraph = text.split(/\n{2,}/).find((part) => /^[A-Z`*]/.test(part)) ?? ''
  return paragraph
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\]\([^)]*\)/g, ']')
    .replaceAll(/[[\]]/g, '')
}

/** An index after https://llmstxt.org: a line for each page. */
export function llmsIndex() {
  const lines = groups().flatMap(({ group, pages }) => [
    `## ${group}`,
    '',
    ...pages.map(({ name, path }) => {
      const page = path.slice('docs/'.length).replace(/\.md$/, '.html')
      return `- [${name}](${page}): ${summaryOf(path)}`
    }),
    '',
  ])
  const quote = summary.replaceAll('\n', ' ')
  return [`# ${title}`, '', `> ${quote}`, '', 'All pages in one text: llms-full.txt', '', ...lines].join('\n')
}

/** The README and all pages. */
export function llmsFull() {
  const paths = ['README.md', ...groups().flatMap(({ pages }) => pages.map(({ path }) => path))]
  return paths.map((path) => `<!-- ${path} -->\n\n${readFileSync(inProject(path), 'utf8')}`).join('\n')
}
