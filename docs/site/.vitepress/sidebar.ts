import { readFileSync } from 'node:fs'
import { contents } from '../../../scripts/contents.mjs'

/** The groups of pages of docs/README.md, then the references and the changelog. */
export function sidebar() {
  const groups = contents().map(({ group, pages }) => ({
    text: group,
    items: pages.map(({ title, page }) => ({ text: title, link: `/${page}` })),
  }))
  const apiPages: string[] = JSON.parse(
    readFileSync(new URL('../pages/api/pages.json', import.meta.url), 'utf8'),
  )
  return [
    ...groups,
    {
      text: 'API reference',
      collapsed: true,
      items: apiPages.map((name) => ({ text: name, link: `/api/${name}` })),
    },
    { text: 'HTTP reference', link: '/openapi' },
    { text: 'Changelog', link: '/changelog' },
  ]
}
