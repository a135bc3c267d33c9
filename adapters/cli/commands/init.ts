import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { CliError, quoteArg, quotePath } from '../errors.ts'
import { exampleFolder, exampleNames } from '../example-folder.ts'

const BUILD = import.meta.dirname

interface InitArguments {
  readonly example: string | undefined
  readonly folder: string | undefined
}

/** `headwater init`: writes an example of the package into a folder of its own. */
async function initCommand({ example, folder = example }: InitArguments, context: CliContext) {
  const examples = await archivedExamples()
  const names = exampleNames(examples)
  if (example === undefined || folder === undefined) {
    for (const name of names) context.print(name)
    return
  }
  if (!names.includes(example)) {
    throw new CliError(2, `unknown example ${quoteArg(example, '')}; expected one of ${names.join(', ')}`)
  }
  await assertEmpty(folder)
  const manifest = JSON.parse(await readFile(join(BUILD, '..', 'package.json'), 'utf8'))
  const files = exampleFolder(examples, example, manifest)
  for (const [path, text] of files) {
    const target = join(folder, path)
    await mkdir(dirname(target), { recursive: true })
    // Overwrites nothing, even if another program writes into the folder meanwhile.
    await writeFile(target, text, { flag: 'wx' })
  }
  context.print(`Wrote ${files.size} files to ${folder}. Now run`)
  context.print(`  cd ${folder} && npm install && npm start`)
}

/** The files of all examples, which the build has put beside this module. */
async function archivedExamples(): Promise<Map<string, string>> {
  const archive = brotliDecompressSync(await readFile(join(BUILD, 'examples.json.br')))
  return new Map(Object.entries(JSON.parse(archive.toString())))
}

async function assertEmpty(folder: string): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new CliError(1, `${quotePath(folder)} cannot be used: ${error.message}`)
  })
  // A new repository is as good as empty.
  if (present.some((name) => name !== '.git')) throw new CliError(1, `${quotePath(folder)} is not empty`)
}

export const INIT = command({
  examples: ['headwater init resumable-chat', 'headwater init work-queue ./my-queue'],
  notes: [
    'Without EXAMPLE, prints the names of the examples. FOLDER must be empty or missing. It gets the example,',
    'what that needs, and a package.json; nothing is installed or sent.',
  ],
  definitions: {
    example: { type: 'positional', required: false, description: 'Name of an example' },
    folder: {
      type: 'positional',
      required: false,
      description: 'Folder to write. Default: the name of the example',
    },
  },
  parse: (values): InitArguments => values,
  run: initCommand,
})
