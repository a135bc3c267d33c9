import { aliasOf, type Definitions, isOn } from './arguments.ts'
import type { CliCommand, CommandEntry } from './command.ts'

/** Descriptions wrap at this width. */
const COLUMNS = 100

type Row = readonly [term: string, description: string]

/**
 * Returns the help of a command, with bold headings.
 *
 * @param path The names of the command and of those that enclose it: `headwater token issue`.
 */
export function helpText(
  path: string,
  { description }: Pick<CommandEntry, 'description'>,
  command: CliCommand,
) {
  const { definitions = {}, commands = [], examples = [], notes = [] } = command
  const all = Object.entries(definitions)
  const own = all.filter(([, one]) => one.type !== 'positional' && !one.isShared)
  const shared = all.flatMap(([name, one]) =>
    one.type !== 'positional' && one.isShared ? [`--${name}`] : [],
  )
  const positionals = all.flatMap(([name, one]): Row[] =>
    one.type === 'positional' ? [[name.toUpperCase(), one.description]] : [],
  )
  const rows = {
    '': positionals,
    Commands: commands.map(({ name, description }): Row => [name, description]),
    Options: own.map(([name, one]): Row => [term(name, one), describe(one)]),
  }
  return [
    description,
    '',
    `${bold('Usage:')} ${path}${usage(all, commands)}`,
    ...Object.entries(rows).flatMap(([heading, list]) => section(heading, list)),
    ...(shared.length === 0 ? [] : ['', ...wrap(`Shared (headwater help options): ${shared.join(' ')}`, 0)]),
    ...(examples.length === 0 ? [] : ['', bold('Examples:'), ...examples.map((line) => `  ${line}`)]),
    ...(notes.length === 0 ? [] : ['', ...notes]),
  ].join('\n')
}

/** Returns the descriptions of options, aligned. */
export function optionLines(definitions: Definitions): string[] {
  return columns(Object.entries(definitions).map(([name, one]): Row => [term(name, one), describe(one)]))
}

function usage(all: readonly (readonly [string, Definitions[string]])[], commands: readonly CommandEntry[]) {
  if (commands.length > 0) return ' COMMAND'
  const words = all.flatMap(([name, one]) => {
    if (one.type !== 'positional') return []
    const word = `${name.toUpperCase()}${one.isRepeated ? '...' : ''}`
    return [one.required === false ? `[${word}]` : word]
  })
  return [...(all.length > words.length ? [' [OPTIONS]'] : []), ...words.map((word) => ` ${word}`)].join('')
}

function section(heading: string, rows: readonly Row[]): string[] {
  if (rows.length === 0) return []
  return ['', ...(heading === '' ? [] : [bold(`${heading}:`)]), ...columns(rows)]
}

function term(name: string, definition: Definitions[string]): string {
  const alias = aliasOf(definition)
  const option = isOn(definition) ? `--no-${name}` : `--${name}`
  const value = definition.type === 'string' ? ` ${definition.value}` : ''
  return `${alias === undefined ? '    ' : `-${alias}, `}${option}${value}`
}

function describe(definition: Definitions[string]): string {
  const { description } = definition
  const isDefaulted = definition.type === 'string' && definition.default !== undefined
  return isDefaulted ? `${description}. Default: ${definition.default}` : description
}

function columns(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([term]) => term.length))
  return rows.flatMap(([term, description]) => {
    const [first, ...others] = wrap(description, width + 4)
    return [`  ${term.padEnd(width)}  ${first}`, ...others.map((line) => `${' '.repeat(width + 4)}${line}`)]
  })
}

/** Breaks a text into lines that fit beside `indent` characters. */
function wrap(text: string, indent: number): string[] {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!
    if (line !== '' && indent + line.length + 1 + word.length > COLUMNS) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines
}

function bold(text: string): string {
  return `\u001b[1m${text}\u001b[0m`
}
