import tab from '@bomb.sh/tab/commander'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import type { CliContext } from './context.ts'
import { helpText } from './options.ts'

/**
 * Completes a command line by what `headwater complete -- WORDS...` prints: a candidate with its description
 * on each line, then a line that begins with a colon. Unlike the scripts of the library, it evaluates nothing
 * that the user has typed, and completes files where there is no candidate.
 */
const SCRIPT = `_headwater() {
  local IFS=$'\\n'
  COMPREPLY=($(headwater complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null | grep -v '^:' | cut -f 1))
}
complete -o default -F _headwater headwater`

const NOTES = [
  'bash: headwater completion > /etc/bash_completion.d/headwater',
  'zsh:  autoload -U bashcompinit && bashcompinit && source <(headwater completion)',
]

/** Adds `completion`, which prints a script, and the hidden `complete`, which that script calls. */
export function addCompletion(program: CommandUnknownOpts, { print }: CliContext): void {
  tab(program as unknown as Parameters<typeof tab>[0], { completionCommandName: 'completion' })
  const completion = program.commands.find((command) => command.name() === 'completion')!
  // The library knows other shells, too, whose scripts are its own.
  Object.assign(completion, { registeredArguments: [] })
  completion
    .description('Print a script that completes commands and options in bash and zsh')
    .addHelpText('after', helpText({ notes: NOTES }))
    .action(() => print(SCRIPT))
}
