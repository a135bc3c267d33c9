import type { ArgsDef } from 'citty'
import { CliError } from './failure.ts'
import { shown } from './printable.ts'

const OPTION = /^--(no-)?([a-z][a-z-]*)(?:=(.*))?$/s

/**
 * Refuses what the parser would let pass or misread: options that there are not, given twice or without their value, values of switches other
 * than true and false, and arguments too few or too many. Messages repeat no values, since any could be a token in a wrong place.
 *
 * @param command For messages: `token issue`.
 * @param positionals `least` is 1 where they have a name, else 0, unless it is given.
 * @throws CliError with exit code 2.
 */
export function checkArguments(
  args: readonly string[],
  definitions: ArgsDef,
  command: string,
  positionals: { readonly name?: string; readonly least?: number; readonly most: number } = { most: 0 },
): void {
  const refusal = (problem: string) => new CliError(2, `${problem}. See headwater ${command} --help`)
  const given = new Set<string>()
  let count = 0
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]!
    if (arg === '--') {
      count += args.length - i - 1
      break
    }
    if (!arg.startsWith('-')) {
      count++
      continue
    }
    const [, negation, name, value] = OPTION.exec(arg) ?? []
    if (name === undefined) throw refusal(`unknown option ${/^-[a-z]/.exec(arg)?.[0] ?? ''}`.trim())
    const type = Object.hasOwn(definitions, name) ? definitions[name]!.type : undefined
    const isSwitch = type === 'boolean'
    if (type === undefined || type === 'positional' || (negation !== undefined && !isSwitch)) {
      throw refusal(`unknown option ${shown(`--${negation ?? ''}${name}`, '')}`.trim())
    }
    if (given.has(name)) throw refusal(`--${name} is given twice`)
    given.add(name)
    if (isSwitch) {
      const isClear = value === undefined || (negation === undefined && /^(true|false)$/.test(value))
      if (!isClear) throw refusal(`--${negation ?? ''}${name} takes no value but true or false`)
    } else if (value === undefined) {
      const next = args[++i]
      if (next === undefined) throw refusal(`--${name} needs a value`)
      if (next.startsWith('-')) {
        throw refusal(
          `--${name} needs a value; one that begins with a hyphen goes behind =, as in --${name}=-x`,
        )
      }
    }
  }
  const { name, least = name === undefined ? 0 : 1, most } = positionals
  if (count < least) throw refusal(`${command} needs ${name}`)
  if (count > most) {
    throw refusal(`${command} takes ${most === 0 ? 'options only' : `one ${name}`}, but more was given`)
  }
}
