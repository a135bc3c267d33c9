import { type CliCommand, command, type Definitions, optionOf, positional } from '../command.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

/** @param others The commands besides this one. */
export function completionCommand(others: Readonly<Record<string, CliCommand>>): CliCommand {
  const completion = command({
    description: 'Print a script that completes commands and options in a shell',
    notes: [
      'bash: headwater completion bash > /etc/bash_completion.d/headwater',
      `zsh:  headwater completion zsh > "\${fpath[1]}/_headwater"`,
      'fish: headwater completion fish > ~/.config/fish/completions/headwater.fish',
    ],
    definitions: { shell: positional('Shell that reads the script', { choices: SHELLS }) },
    parse: ({ shell }) => shell,
    async run(shell, context) {
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }
      for (const line of scripts[shell](wordsOf({ ...others, completion }))) context.print(line)
    },
  })
  return completion
}

/** The words that may follow a command: the names of its members, and its options. */
interface Words {
  /** The command with its group, such as `token issue`; empty for the command line itself. */
  readonly path: string
  readonly hasCommands: boolean
  readonly words: readonly Word[]
}

interface Word {
  readonly text: string
  readonly description: string
}

function wordsOf(commands: CliCommand['commands'] = {}, path = '', definitions: Definitions = {}): Words[] {
  const members = Object.entries(commands)
  const below = members.flatMap(([name, one]) =>
    wordsOf(one.commands, `${path} ${name}`.trim(), one.definitions),
  )
  const words = [
    ...members.map(([text, { description }]) => ({ text, description })),
    ...optionsOf(definitions),
    { text: '--help', description: 'Print the help' },
  ]
  return [{ path, hasCommands: members.length > 0, words }, ...below]
}

function optionsOf(definitions: Definitions): Word[] {
  return Object.entries(definitions).flatMap(([name, definition]) => {
    if (definition.type === 'positional') return []
    const { long, short, description } = optionOf(name, definition)
    return [long, short].flatMap((text) => (text ? [{ text, description }] : []))
  })
}

/** Completes by the words before the cursor that are no options. */
function bashScript(all: readonly Words[]): string[] {
  return [
    '_headwater() {',
    `  local current="\${COMP_WORDS[COMP_CWORD]}" at="" word i`,
    '  for ((i = 1; i < COMP_CWORD; i++)); do',
    `    word="\${COMP_WORDS[i]}"`,
    `    case "\${at:+$at }$word" in`,
    `      ${paths(all).map(quote).join(' | ')}) at="\${at:+$at }$word" ;;`,
    '    esac',
    '  done',
    '  case "$at" in',
    ...all.map(
      ({ path, words }) =>
        `    ${quote(path)}) COMPREPLY=($(compgen -W ${quote(words.map(({ text }) => text).join(' '))} -- "$current")) ;;`,
    ),
    '  esac',
    '}',
    'complete -o default -F _headwater headwater',
  ]
}

function zshScript(all: readonly Words[]): string[] {
  return [
    '#compdef headwater',
    '_headwater() {',
    '  local at="" word',
    '  local -a items',
    `  for word in "\${(@)words[2,CURRENT-1]}"; do`,
    `    case "\${at:+$at }$word" in`,
    `      ${paths(all).map(quote).join(' | ')}) at="\${at:+$at }$word" ;;`,
    '    esac',
    '  done',
    '  case "$at" in',
    ...all.flatMap(({ path, words }) => [
      `    ${quote(path)}) items=(`,
      ...words.map(({ text, description }) => `      ${quote(`${text}:${description}`)}`),
      '    ) ;;',
    ]),
    '  esac',
    "  _describe 'headwater' items || _files",
    '}',
    'if [ "$funcstack[1]" = _headwater ]; then _headwater "$@"; else compdef _headwater headwater; fi',
  ]
}

function fishScript(all: readonly Words[]): string[] {
  return [
    'function __headwater_path',
    "    set -l at ''",
    '    for word in (commandline -opc)[2..-1]',
    '        switch (string trim -- "$at $word")',
    `            case ${paths(all).map(quote).join(' ')}`,
    '                set at (string trim -- "$at $word")',
    '        end',
    '    end',
    '    echo $at',
    'end',
    // Where a command is expected, files are not.
    ...all
      .filter(({ hasCommands }) => hasCommands)
      .map(({ path }) => `complete -c headwater -f -n ${quote(`test "$(__headwater_path)" = "${path}"`)}`),
    ...all.flatMap(({ path, words }) =>
      words.map(
        ({ text, description }) =>
          `complete -c headwater -n ${quote(`test "$(__headwater_path)" = "${path}"`)} -a ${quote(text)} -d ${quote(description)}`,
      ),
    ),
  ]
}

function paths(all: readonly Words[]): string[] {
  return all.map(({ path }) => path).filter((path) => path !== '')
}

/**
 * Quotes a text for all three shells: in single quotes, a quote ends them, is escaped, and begins them
 * again.
 */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
