import tab from '@bomb.sh/tab/commander'
import { Argument, type CommandUnknownOpts } from '@commander-js/extra-typings'
import type { CliContext } from './context.ts'
import { helpText } from './options.ts'

/**
 * Scripts that complete a command line by what `headwater complete -- WORDS...` prints: a candidate with its
 * description on each line, then a line that begins with a colon. Unlike those of the library, they evaluate
 * nothing that the user has typed, and complete files where there is no candidate.
 */
const SCRIPTS = {
  bash: `_headwater() {
  local IFS=$'\\n'
  COMPREPLY=($(headwater complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null | grep -v '^:' | cut -f 1))
}
complete -o default -F _headwater headwater`,
  zsh: `#compdef headwater
_headwater() {
  local -a items
  items=("\${(@f)$(headwater complete -- "\${(@)words[2,CURRENT]}" 2> /dev/null | grep -v '^:' | tr '\\t' ':')}")
  if [[ -n "$items" ]]; then _describe headwater items; else _files; fi
}
if [ "$funcstack[1]" = _headwater ]; then _headwater "$@"; else compdef _headwater headwater; fi`,
  fish: `function __headwater_complete
    headwater complete -- (commandline -opc)[2..-1] (commandline -ct) 2> /dev/null | string match -v ':*'
end
complete -c headwater -a '(__headwater_complete)'`,
}

const NOTES = [
  'bash: headwater completion bash > /etc/bash_completion.d/headwater',
  `zsh:  headwater completion zsh > "\${fpath[1]}/_headwater"`,
  'fish: headwater completion fish > ~/.config/fish/completions/headwater.fish',
]

/** Adds `completion`, which prints a script, and the hidden `complete`, which that script calls. */
export function addCompletion(program: CommandUnknownOpts, { print }: CliContext): void {
  tab(program as unknown as Parameters<typeof tab>[0], { completionCommandName: 'completion' })
  const completion = program.commands.find((command) => command.name() === 'completion')!
  const shells = Object.keys(SCRIPTS)
  // The library knows powershell, too.
  const argument = new Argument('<SHELL>', 'Shell that reads the script').choices(shells)
  Object.assign(completion, { registeredArguments: [argument] })
  completion
    .description('Print a script that completes commands and options in a shell')
    .addHelpText('after', helpText({ notes: NOTES }))
    .action((...[shell]) => print(SCRIPTS[shell as keyof typeof SCRIPTS]))
}
