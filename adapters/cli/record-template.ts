import { randomInt, randomUUID } from 'node:crypto'
import { concatBytes } from '../../src/model/bytes.ts'
import { dateTimeText } from '../../src/wire/json-members.ts'
import { integerArgument } from './arguments.ts'
import { compileTemplate, type Directive, directiveLines } from './template.ts'

/** What differs between generated records. */
interface Generated {
  /** From 1. */
  readonly index: number
  /** Milliseconds since the Unix epoch. */
  readonly now: number
}

const LENGTH_MAX = 1024 * 1024
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

const DIRECTIVES: readonly Directive<Generated>[] = [
  {
    letter: 'i',
    description: 'number of the record, from 1',
    compile:
      () =>
      ({ index }) =>
        String(index),
  },
  {
    letter: 'T',
    description: 'time in milliseconds since 1970',
    compile:
      () =>
      ({ now }) =>
        String(now),
  },
  {
    letter: 'D',
    description: 'date and time, such as 2030-01-31T12:00:00.5Z',
    compile:
      () =>
      ({ now }) =>
        dateTimeText(now),
  },
  { letter: 'u', description: 'random UUID', compile: () => () => randomUUID() },
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
