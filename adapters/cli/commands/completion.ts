import { aliasOf, choiceArgument, type Definitions, isOn, positional } from '../arguments.ts'
import { type CliCommand, type CommandEntry, command } from '../command.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const

/** @param root The command line, which contains this command. */
export function completionCommand(root: CommandEntry): CliCommand {
  return command({
    notes: [
      'bash: headwater completion bash > /etc/bash_completion.d/headwater',
      `zsh:  headwater completion zsh > "\${fpath[1]}/_headwater"`,
      'fish: headwater completion fish > ~/.config/fish/completions/headwater.fish',
    ],
    definitions: { shell: positional('bash, zsh or fish') },
    parse: ({ shell }) => choiceArgument(shell, 'SHELL', SHELLS),
    async run(shell, context) {
      const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript }
      for (const line of scripts[shell](await wordsOf(await root.load()))) context.print(line)
    },
  })
}

interface Words {
  /** The command with its groups, such as `token issue`; empty for the command line itself. */
  readonly path: string
  readonly hasCommands: boolean
  readonly words: readonly Word[]
}

interface Word {
  readonly text: string
  readonly description: string
}

/** Returns the words that may follow each command: its subcommands and its options. */
async function wordsOf(root: CliCommand): Promise<Words[]> {
  return (await walk(root, [])).map(({ path, command }) => ({
    path: path.join(' '),
    hasCommands: command.commands !== undefined,
    words: [
      ...(command.commands ?? []).map(({ name, description }) => ({ text: name, description })),
      ...optionsOf(command.definitions ?? {}),
      { text: '--help', description: 'Print the help' },
    ],
  }))
}

interface Place {
  readonly path: readonly string[]
  readonly command: CliCommand
}

async function walk(command: CliCommand, path: readonly string[]): Promise<Place[]> {
  const places: Place[] = [{ path, command }]
  for (const entry of command.commands ?? []) {
    places.push(...(await walk(await entry.load(), [...path, entry.name])))
  }
  return places
}

function optionsOf(definitions: Definitions): Word[] {
  return Object.entries(definitions).flatMap(([name, definition]) => {
    if (definition.type === 'positional') return []
    const { description } = definition
    const alias = aliasOf(definition)
    return [
      { text: isOn(definition) ? `--no-${name}` : `--${name}`, description },
      ...(alias === undefined ? [] : [{ text: `-${alias}`, description }]),
    ]
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
