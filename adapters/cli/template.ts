import { utf8 } from '../../src/model/bytes.ts'
import { CliError, printable } from './errors.ts'

/** A letter of a template, such as `o` in `%o`. */
export interface Directive<Subject> {
  readonly letter: string
  /** The name of its argument in braces, such as `NAME` in `%h{NAME}`; undefined if it takes none. */
  readonly argument?: string | undefined
  readonly description: string
  /** Returns what fills its place. Throws CliError with exit code 2 for an invalid argument. */
  readonly compile: (argument: string) => (subject: Subject) => Uint8Array | string
}

/** A directive without an argument. */
export function plainDirective<Subject>(
  letter: string,
  description: string,
  textOf: (subject: Subject) => string,
): Directive<Subject> {
  return { letter, description, compile: () => textOf }
}

const ESCAPES: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, '0': 0, '\\': 92 }
const PART = /%%|%([a-zA-Z])(?:\{([^}]*)(\}?))?|\\(?:x([0-9a-fA-F]{2})|([ntr0\\]))|([^%\\]+)|[\s\S]/g

/**
 * Compiles a template of text, directives and escapes to a function that returns its parts.
 *
 * @param name The argument, for errors: `--format`.
 * @throws CliError with exit code 2.
 */
export function compileTemplate<Subject>(
  text: string,
  name: string,
  directives: readonly Directive<Subject>[],
): (subject: Subject) => readonly Uint8Array[] {
  const parts = [...text.matchAll(PART)].map(
    (match): Uint8Array | ((subject: Subject) => Uint8Array | string) => {
      const [all, letter, argument, closing, hex, escaped, plain] = match
      if (plain !== undefined) return utf8(plain)
      if (all === '%%') return utf8('%')
      if (hex !== undefined) return Uint8Array.of(Number.parseInt(hex, 16))
      if (escaped !== undefined) return Uint8Array.of(ESCAPES[escaped]!)
      const known = directives.find((one) => one.letter === letter)
      if (closing !== '' && known !== undefined && (argument === undefined || known.argument !== undefined)) {
        return known.compile(argument ?? '')
      }
      const expected = directives.map((one) => `%${one.letter}`).join(' ')
      const problem = all.startsWith('\\')
        ? `unknown escape; write a backslash as \\\\`
        : closing === ''
          ? `\`%${letter}{\` without \`}\``
          : `unknown directive \`${printable(all)}\`; expected ${expected}, or %% for a percent sign`
      throw new CliError(2, `invalid ${name}: ${problem}; see \`headwater help format\``)
    },
  )
  return (subject) =>
    parts.map((part) => {
      const value = typeof part === 'function' ? part(subject) : part
      return typeof value === 'string' ? utf8(value) : value
    })
}

/** Returns a line of help for each directive. */
export function directiveLines<Subject>(directives: readonly Directive<Subject>[]): string[] {
  const terms = directives.map(({ letter, argument }) =>
    argument === undefined ? `%${letter}` : `%${letter}, %${letter}{${argument}}`,
  )
  const width = Math.max(...terms.map((term) => term.length))
  return directives.map(({ description }, at) => `  ${terms[at]!.padEnd(width)}  ${description}`)
}
