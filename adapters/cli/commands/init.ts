import { cp, readdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quotePath } from '../errors.ts'
import { newCommand } from '../options.ts'

/** The folders of the examples, which the build has put beside this module. */
const EXAMPLES = join(import.meta.dirname, 'examples')

export const initCommand = (context: CliContext) =>
  newCommand('init', {
    description: 'Write an example into an empty folder, to start from',
    examples: ['headwater init resumable-chat', 'headwater init work-queue ./my-queue'],
    notes: [
      'Without EXAMPLE, prints the names of the examples. FOLDER must be empty or missing. It gets the example,',
      'what that needs, and a package.json; nothing is installed or sent.',
    ],
  })
    .argument('[EXAMPLE]', 'Name of an example')
    .argument('[FOLDER]', 'Folder to write. Default: the name of the example')
    .action(async (example, folder = example) => {
      const names = (await readdir(EXAMPLES)).sort()
      if (example === undefined || folder === undefined) {
        for (const name of names) context.print(name)
        return
      }
      if (!names.includes(example)) {
        throw new CliError(2, `unknown example ${quoteArg(example)}; expected one of ${names.join(', ')}`)
      }
      await assertEmpty(folder)
      // Overwrites nothing, even if another program writes into the folder meanwhile.
      await cp(join(EXAMPLES, example), folder, { recursive: true, force: false, errorOnExist: true })
      const manifest = join(folder, 'package.json')
      const text = await readFile(manifest, 'utf8')
      await writeFile(manifest, text.replace(`"name": "${example}"`, `"name": "${packageName(folder)}"`))
      // A package would leave this file out, and what it names.
      await writeFile(join(folder, '.gitignore'), '/node_modules\n/dist\n/data\n')
      context.print(`Wrote ${example} to ${folder}. Now run`)
      context.print(`  cd ${folder} && npm install && npm start`)
    })

function packageName(folder: string): string {
  return (
    basename(resolve(folder))
      .toLowerCase()
      .replaceAll(/[^a-z0-9-]+/g, '-') || 'example'
  )
}

async function assertEmpty(folder: string): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliError(1, `${quotePath(folder)} cannot be used: ${error.message}`)
  })
  // A new repository is as good as empty.
  if (present.some((name) => name !== '.git')) throw new CliError(1, `${quotePath(folder)} is not empty`)
}
