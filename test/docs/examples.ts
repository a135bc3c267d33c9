import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

export const PROJECT = join(import.meta.dirname, '..', '..')

export interface Example {
  readonly line: number
  readonly code: string
  /** The `text` block after it, which a line may introduce; empty if there is none. */
  readonly output: string
}

/** The README and the pages of `docs`. */
export async function pages(): Promise<string[]> {
  const names = await readdir(join(PROJECT, 'docs'))
  return ['README.md', ...names.filter((name) => name.endsWith('.md')).map((name) => `docs/${name}`)]
}

/** The blocks marked as `ts` alone: programs that run as they stand. */
export async function examplesOf(page: string): Promise<Example[]> {
  const text = await readFile(join(PROJECT, page), 'utf8')
  const blocks = text.matchAll(/^```ts\n([\s\S]*?)^```\n(?:\n(?:[A-Z].*:\n\n)?```text\n([\s\S]*?)^```$)?/gm)
  return [...blocks].map(({ index, 1: code, 2: output = '' }) => ({
    line: text.slice(0, index).split('\n').length,
    code: code!,
    output,
  }))
}

/** The block marked with a file name, as in `ts tab.ts`: code for a bundler. */
export async function namedExample(page: string, name: string, language = 'ts'): Promise<string> {
  const text = await readFile(join(PROJECT, page), 'utf8')
  const block = new RegExp(`^\`\`\`${language} ${name}\\.${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm')
  const [, code] = block.exec(text) ?? []
  if (code === undefined) throw new Error(`${page} has no example ${name}.${language}`)
  return code
}

/** The text below a heading, up to the next heading of any level. */
export async function section(page: string, title: string): Promise<string> {
  const text = await readFile(join(PROJECT, page), 'utf8')
  const parts = text.split(/^#+ (.+)$/m)
  const heading = parts.indexOf(title)
  if (heading === -1) throw new Error(`${page} has no section "${title}"`)
  return parts[heading + 1]!
}
