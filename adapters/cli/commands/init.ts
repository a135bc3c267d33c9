import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quotePath } from '../errors.ts'
import { answerFrom } from '../input.ts'
import { newCommand } from '../options.ts'

/** The folders of the examples, which the build has put beside this module. */
const EXAMPLES = join(import.meta.dirname, 'examples')

export const initCommand = (context: CliContext) =>
  newCommand('init', {
    description: 'Write an example into an empty folder, to start from',
    examples: ['headwater init resumable-chat', 'headwater init work-queue ./my-queue'],
    notes: [
      'Without EXAMPLE, lists the examples, and asks for one on a terminal. FOLDER must be empty or missing.',
      'It gets a project with a package.json of that name; nothing is installed or sent.',
    ],
  })
    .argument('[EXAMPLE]', 'Name of an example')
    .argument('[FOLDER]', 'Folder to write. Default: the name of the example')
    .action(async (given, givenFolder) => {
      const names = (await readdir(EXAMPLES)).sort()
      const example = given ?? (await chosen(names, context))
      if (!names.includes(example)) {
        throw new CliError(2, `unknown example ${quoteArg(example)}; expected one of ${names.join(', ')}`)
      }
      const folder = givenFolder ?? example
      await assertEmpty(folder)
      // Overwrites nothing, even if another program writes into the folder meanwhile.
      await cp(join(EXAMPLES, example), folder, { recursive: true, force: false, errorOnExist: true })
      const manifest = { ...(await manifestOf(folder)), name: packageName(folder) }
      await writeFile(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
      // A package would leave this file out, and what it names.
      await writeFile(join(folder, '.gitignore'), '/node_modules\n/dist\n/data\n')
      context.print(`Wrote ${example} to ${folder}. Now run`)
      context.print(`  cd ${folder} && npm install && npm run dev`)
    })

/** Lists the examples, and resolves to the answer of a user. Rejects without a terminal. */
async function chosen(names: readonly string[], { input, print, printError }: CliContext): Promise<string> {
  const width = Math.max(...names.map((name) => name.length))
  for (const name of names) {
    print(`${name.padEnd(width)}  ${(await manifestOf(join(EXAMPLES, name))).description}`)
  }
  const terminal = input()
  if (terminal.isTTY) printError('Name of an example:')
  const answer = terminal.isTTY ? await answerFrom(terminal) : ''
  if (answer !== '') return answer
  throw new CliError(2, 'the name of an example is required: headwater init EXAMPLE')
}

async function manifestOf(folder: string): Promise<{ readonly name: string; readonly description: string }> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
}

function packageName(folder: string): string {
  const name = basename(resolve(folder)).toLowerCase()
  return name.replaceAll(/[^a-z0-9]+/g, '-').replaceAll(/^-|-$/g, '') || 'example'
}

async function assertEmpty(folder: string): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliError(1, `${quotePath(folder)} cannot be used: ${error.message}`)
  })
  // A new repository is as good as empty.
  if (present.some((name) => name !== '.git')) throw new CliError(1, `${quotePath(folder)} is not empty`)
}
