import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { PROJECT, repositoryFiles } from './examples.ts'

const CODE = /\.(ts|mjs|js|proto|json|yml|yaml|sh|css|html)$|^\.ci\/run$/
/** A document by its path from the root of the repository, and a section by its title. */
const CITATION = /(?<![\w./-])((?:[\w-]+\/)*[\w-]+\.md)\b(?: "([^"\n]+)")?/g
const LINK = /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g

const files = repositoryFiles()
const documents = files.filter((path) => path.endsWith('.md'))
const code = files.filter((path) => CODE.test(path) && path !== 'package-lock.json')

const textOf = (path: string) => readFileSync(join(PROJECT, path), 'utf8')

test('every document and section that the code cites exists', () => {
  const broken: string[] = []
  let cited = 0
  for (const path of code) {
    for (const [, document, section] of unwrapped(textOf(path)).matchAll(CITATION)) {
      if (!documents.includes(document!)) broken.push(`${path}: no document ${document}`)
      else if (section !== undefined && !headingsOf(document!).includes(section)) {
        broken.push(`${path}: ${document} has no section "${section}"`)
      }
      cited++
    }
  }
  expect(broken).toEqual([])
  expect(cited).toBeGreaterThan(100)
})

test('every link between documents leads to a file and a section', () => {
  const broken: string[] = []
  for (const path of documents) {
    for (const [link, target, anchor] of withoutCode(textOf(path)).matchAll(LINK)) {
      const file = target === '' ? path : normalize(join(dirname(path), target!))
      if (!existsSync(join(PROJECT, file))) broken.push(`${path}: ${link} leads nowhere`)
      else if (anchor !== undefined && !headingsOf(file).map(anchorOf).includes(anchor)) {
        broken.push(`${path}: ${link}: no such section`)
      }
    }
  }
  expect(broken).toEqual([])
})

test('no document is without a link from another', () => {
  const linked = new Set<string>()
  for (const path of documents) {
    for (const [, target] of textOf(path).matchAll(LINK)) linked.add(normalize(join(dirname(path), target!)))
  }
  const pages = documents.filter((path) => path.startsWith('docs/'))
  expect(pages.filter((path) => !linked.has(path))).toEqual([])
})

function headingsOf(path: string): string[] {
  return [...withoutCode(textOf(path)).matchAll(/^#+ (.+)$/gm)].map(([, title]) => title!)
}

/** The anchor that a heading has on GitHub. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '')
}

/** Joins the lines of a comment, so that a citation may be wrapped. */
function unwrapped(text: string): string {
  return text.replaceAll(/\n[ \t]*(?:\*|\/\/|#) /g, ' ')
}
