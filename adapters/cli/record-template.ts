import { randomInt, randomUUID } from 'node:crypto'
import { concatBytes } from '../../src/model/bytes.ts'
import { dateTimeText } from '../../src/wire/json-members.ts'
import { integerArgument } from './arguments.ts'
import { compileTemplate, type Directive, directiveLines, plainDirective } from './template.ts'

/** The values that differ between generated records. */
interface Generated {
  /** The number of the record, beginning with 1. */
  readonly index: number
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

const LENGTH_MAX = 1024 * 1024
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

const DIRECTIVES: readonly Directive<Generated>[] = [
  plainDirective('i', 'number of the record, from 1', ({ index }) => String(index)),
  plainDirective('T', 'time in milliseconds since 1970', ({ now }) => String(now)),
  plainDirective('D', 'date and time, such as 2030-01-31T12:00:00.5Z', ({ now }) => dateTimeText(now)),
  plainDirective('u', 'random UUID', () => randomUUID()),
  {
    letter: 'n',
    argument: 'MAX',
    description: 'random number from 0 to MAX, 100 by default',
    compile: (argument) => {
      const max = argument === '' ? 100 : integerArgument(argument, '`%n`', 2 ** 47)
      return () => String(randomInt(max + 1))
    },
  },
  {
    letter: 'r',
    argument: 'LENGTH',
    description: 'random letters and digits, 10 by default',
    compile: (argument) => {
      const length = argument === '' ? 10 : integerArgument(argument, '`%r`', LENGTH_MAX)
      return () => Array.from({ length }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join('')
    },
  },
]

/** Compiles the TEXT of `append --count`. @throws CliError with exit code 2. */
export function recordTemplate(text: string): (generated: Generated) => Uint8Array {
  const partsOf = compileTemplate(text, 'TEXT', DIRECTIVES)
  return (generated) => concatBytes(partsOf(generated))
}

/** Describes the directives. */
export const TEMPLATE_LINES = directiveLines(DIRECTIVES)
