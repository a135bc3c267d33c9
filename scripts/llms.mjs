// The pages of `docs` for language models: an index of them, and all of them in one text.
import { readFileSync } from 'node:fs'
import { contents } from './contents.mjs'
import { inProject } from './project.mjs'

const readme = readFileSync(inProject('README.md'), 'utf8')
const [, title, summary] = /^# (\w+)\n\n([\s\S]*?)\n\n/.exec(readme)

/** An index after https://llmstxt.org: a line for each page. */
export function llmsIndex() {
  const lines = contents().flatMap(({ group, pages }) => [
    `## ${group}`,
    '',
    ...pages.map(({ title, page, about }) => `- [${title}](${page}.html): ${about || title}`),
    '',
  ])
  const quote = summary.replaceAll('\n', ' ')
  return [`# ${title}`, '', `> ${quote}`, '', 'All pages in one text: llms-full.txt', '', ...lines].join('\n')
}

/** The README and all pages. */
export function llmsFull() {
  const pages = contents().flatMap((group) => group.pages)
  const paths = ['README.md', ...pages.map(({ page }) => `docs/${page}.md`)]
  return paths.map((path) => `<!-- ${path} -->\n\n${readFileSync(inProject(path), 'utf8')}`).join('\n')
}
