// The list of pages in docs/README.md, which the site and llms.txt have too.
import { readFileSync } from 'node:fs'
import { inProject } from './project.mjs'

/** The groups of pages, each page with its title, its name without the extension, and what follows the link. */
export function contents() {
  const [, ...groups] = readFileSync(inProject('docs', 'README.md'), 'utf8').split(/^## /m)
  return groups.map((text) => ({
    group: text.split('\n')[0],
    pages: [...text.matchAll(/^- \[([^\]]+)\]\(([\w-]+)\.md\)[:,]? ?(.*)$/gm)].map(
      ([, title, page, about]) => ({ title, page, about }),
    ),
  }))
}
