import { readFileSync } from 'node:fs'

/** The groups of pages, from the table "Documentation" of the README, then the API and the changelog. */
export function sidebar() {
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8')
  const table = readme.slice(readme.indexOf('## Documentation'))
  const groups = [...table.matchAll(/^\| ([A-Z]\w+) \| (.*) \|$/gm)].map(([, text, links]) => ({
    text,
    items: [...links!.matchAll(/\[([^\]]+)\]\(docs\/([\w-]+)\.md\)/g)].map(([, title, page]) => ({
      text: title,
      link: `/${page}`,
    })),
  }))
  const apiPages: string[] = JSON.parse(
    readFileSync(new URL('../pages/api/pages.json', import.meta.url), 'utf8'),
  )
  return [
    ...groups.filter(({ items }) => items.length > 0),
    {
      text: 'API reference',
      collapsed: true,
      items: apiPages.map((name) => ({ text: name, link: `/api/${name}` })),
    },
    { text: 'HTTP reference', link: '/openapi' },
    { text: 'Changelog', link: '/changelog' },
  ]
}
