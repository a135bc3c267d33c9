import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { readSources } from './source-module.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const PREPOSITIONS = 'After|As|At(?! most| least)|Before|By|For|From|If|In|Of|On|To|Until|With|Without'
const PARTICIPLES = 'Called|Closed|Dropped|Given|Kept|Marked|Shared|Stored|Used'
/** A docstring that only continues the name below it: "By digest.", "In bytes; …". A comma makes a clause. */
const FRAGMENT = new RegExp(
  `^(?:(?:${PREPOSITIONS})\\b[^,]*?[.;:](?:\\s|$)|(?:${PARTICIPLES})\\.|(?:What|When|Where|Who|Like|Not)\\b)`,
)

/** A default that is named by other words. */
const OTHER_DEFAULT = /\bdefaults? to\b|(?<!by )\bdefault:|\(default\b|\bthe default is\b/i

/** The docstrings of a file, each as one line. */
function docstringsOf(text: string): string[] {
  return [...text.matchAll(/\/\*\*([\s\S]*?)\*\//g)].map(([, inner]) =>
    inner!
      .replace(/\n\s*\* ?/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  )
}

it('docstrings begin with a noun or a verb', () => {
  const fragments = [...readSources(ROOT, ['src', 'adapters'])].flatMap(([path, text]) =>
    docstringsOf(text)
      .filter((docstring) => FRAGMENT.test(docstring))
      .map((docstring) => `${path}: ${docstring.slice(0, 60)}`),
  )
  expect(fragments).toEqual([])
})

it('docstrings name defaults by one phrase: `30 by default`', () => {
  const others = [...readSources(ROOT, ['src', 'adapters'])].flatMap(([path, text]) =>
    docstringsOf(text)
      .filter((docstring) => OTHER_DEFAULT.test(docstring))
      .map((docstring) => `${path}: ${docstring.slice(0, 60)}`),
  )
  expect(others).toEqual([])
})

it('a fragment is told from a sentence', () => {
  const isFragment = (docstring: string) => FRAGMENT.test(docstringsOf(`/** ${docstring} */`)[0]!)
  for (const one of [
    'By digest.',
    'In bytes; undefined if it is not known.',
    'Of its\n * records.',
    'Shared.',
    'What a caller may do.',
    'When it expires.',
    'Like `next()`, for several.',
  ])
    expect(isFragment(one), one).toBe(true)
  for (const one of ['Logs by digest.', 'If the disk is full, writes less.', 'Called with the tail.'])
    expect(isFragment(one), one).toBe(false)
})
