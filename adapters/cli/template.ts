import { utf8 } from '../../src/model/bytes.ts'
import { CliError, printable } from './errors.ts'

/** What stands for a letter of a template, such as `%o`. */
interface Field<Subject> {
  readonly description: string
  readonly valueOf: (subject: Subject) => Uint8Array | string
}

/** The fields of a template, by letter. */
export type Fields<Subject> = Readonly<Record<string, Field<Subject>>>

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', '0': '\0', '\\': '\\' }

/**
 * Compiles a template of text, fields and escapes to a function that returns its parts.
 *
 * @param name The argument, for errors: `--format`.
 * @throws CliError with exit code 2.
 */
export function compileTemplate<Subject>(
  text: string,
  name: string,
  fields: Fields<Subject>,
): (subject: Subject) => readonly Uint8Array[] {
  const parts = [...text.matchAll(/([%\\])([\s\S]?)|[^%\\]+/g)].map(([part, mark, letter = '']) => {
    if (mark === undefined || part === '%%') return utf8(mark === undefined ? part : '%')
    const known: Readonly<Record<string, string | Field<Subject>>> = mark === '%' ? fields : ESCAPES
    const value = Object.hasOwn(known, letter) ? known[letter] : undefined
    if (value !== undefined) return typeof value === 'string' ? utf8(value) : value.valueOf
    const expected = Object.keys(fields).map((one) => `%${one}`)
    const problem =
      mark === '\\'
        ? 'unknown escape; write a backslash as \\\\'
        : `unknown field \`${printable(part)}\`; expected ${expected.join(' ')}, or %% for a percent sign`
    throw new CliError(2, `invalid ${name}: ${problem}; see \`headwater help format\``)
  })
  return (subject) =>
    parts.map((part) => {
      const value = typeof part === 'function' ? part(subject) : part
      return typeof value === 'string' ? utf8(value) : value
    })
}

/** Returns a line of help for each field. */
export function fieldLines<Subject>(fields: Fields<Subject>): string[] {
  return Object.entries(fields).map(([letter, { description }]) => `  %${letter}  ${description}`)
}
