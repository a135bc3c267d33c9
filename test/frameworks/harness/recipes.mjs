import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

const DOCS = join(import.meta.dirname, '..', '..', '..', 'docs')
/** A block of code with the names of files. */
const BLOCK = /^```\w+ (\S.*)\n([\s\S]*?)^```$/gm

/** The files of an app that the documentation shows, by path; `edits` are replacements in its `server.js`. */
export async function recipeOf(app, edits = []) {
  const files = new Map((await recipes()).filter(([name]) => name === app).map(([, ...file]) => file))
  if (files.size === 0) throw new Error(`no recipe in docs is a file of ${app}`)
  for (const [from, to] of edits) {
    const edited = files.get('server.js').replace(from, to)
    if (edited === files.get('server.js')) throw new Error(`the recipe of ${app} does not contain ${from}`)
    files.set('server.js', edited)
  }
  return files
}

/**
 * All files that docs/http.md, docs/streaming-answers.md and docs/ai-chat.md show.
 *
 * @returns {Promise<[app: string, path: string, code: string][]>}
 */
export async function recipes() {
  const read = async (page) => [...(await readFile(join(DOCS, page), 'utf8')).matchAll(BLOCK)]
  const blocks = [...(await read('http.md')), ...(await read('streaming-answers.md'))]
  const recipes = blocks.flatMap(([, names, code]) =>
    names
      .split(' ')
      .filter((name) => name.includes('/'))
      .map((name) => {
        const [app, ...path] = name.split('/')
        return [app, path.join('/'), code]
      }),
  )
  const chat = (await read('ai-chat.md')).map(([, path, code]) => ['next-chat', path, code])
  return [...recipes, ...chat]
}
