import { CommanderError } from 'commander'
import type { CliContext } from './context.ts'
import { cliErrorOf, Interrupted, isBrokenPipe } from './errors.ts'
import { headwaterProgram } from './program.ts'
import { TOPICS } from './topics.ts'

/** Runs the `headwater` command with its arguments, without the program name. Resolves with the exit code. */
export async function runCli(args: readonly string[], context: CliContext): Promise<number> {
  try {
    const [first, ...words] = args
    const topic = first === 'help' && words.length === 1 ? words[0]! : ''
    if (Object.hasOwn(TOPICS, topic)) context.print(TOPICS[topic]!())
    // The help of commander itself knows no members of groups.
    else {
      const used = first === 'help' && words.length > 1 ? [...words, '--help'] : args
      await headwaterProgram(context).parseAsync(used, { from: 'user' })
    }
    return 0
  } catch (error) {
    // The help or the version was printed.
    if (error instanceof CommanderError) return error.exitCode
    // As with `| head`.
    if (isBrokenPipe(error)) return 0
    if (error instanceof Interrupted) {
      if (error.message !== '') context.printError(`headwater: ${error.message}`)
      return error.exitCode
    }
    const cliError = cliErrorOf(error)
    if (cliError === undefined) throw error
    context.printError(`headwater: ${cliError.message}`)
    return cliError.exitCode
  }
}
