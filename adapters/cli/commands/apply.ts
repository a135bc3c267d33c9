import { buffer } from 'node:stream/consumers'
import { Option } from '@commander-js/extra-typings'
import { type Headwater, HeadwaterError } from '../../../src/index.ts'
import { applyResources, type ResourceChange } from '../../resources/apply-resources.ts'
import { parseResources, RESOURCE_SCHEMA, type ResourceSpec } from '../../resources/resource-spec.ts'
import type { CliContext } from '../context.ts'
import { CliError, printable, quotePath } from '../errors.ts'
import { targetCommand } from '../options.ts'
import { withHeadwater } from '../target.ts'
import { contentOfFile, nameText } from '../values.ts'

export const applyCommand = (context: CliContext) =>
  targetCommand('apply', {
    description: 'Create and configure the basins and streams that a file declares',
    examples: [
      'headwater apply --file resources.yaml --dry-run',
      'headwater apply -f resources.json',
      'headwater apply --schema > schema.json',
    ],
    notes: [
      'The file is JSON or YAML: {"basins": [{"name", "config", "streams": [{"name", "config"}]}]}.',
      'Creates what is missing, changes what differs from what the file declares, and deletes nothing.',
      '`headwater serve --init-file FILE` does the same before it serves.',
    ],
  })
    .option('-f, --file <FILE>', 'The file, or - for standard input')
    .option('--dry-run', 'Print what would be done, and do nothing')
    .addOption(new Option('--schema', 'Print the JSON schema of the file, for editors').conflicts('dryRun'))
    .action(async ({ file, dryRun = false, schema, ...target }) => {
      if (schema) return context.print(JSON.stringify(RESOURCE_SCHEMA, null, 2))
      if (file === undefined) throw new CliError(2, '`--file` is required; see `headwater apply --help`')
      const spec = await readResources(file, context)
      await withHeadwater(target, context, (hw) =>
        apply(hw, spec, context.print, { dryRun, signal: context.stopSignal() }),
      )
    })

/**
 * Reads a file of basins and streams.
 *
 * @throws CliError if there is no such file, or if it declares something else.
 */
export async function readResources(
  path: string,
  { input }: Pick<CliContext, 'input'>,
): Promise<ResourceSpec> {
  const content = path === '-' ? await buffer(input()) : contentOfFile(path)
  try {
    return parseResources(content.toString())
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    const name = path === '-' ? 'standard input' : quotePath(path)
    throw new CliError(1, `${name} cannot be applied: ${printable(error.message)}`)
  }
}

/** Applies the file, and prints a line for each basin and stream. */
export async function apply(
  hw: Headwater,
  spec: ResourceSpec,
  print: (line: string) => void,
  options: { readonly dryRun?: boolean; readonly signal?: AbortSignal | undefined } = {},
): Promise<void> {
  for await (const change of applyResources(hw, spec, options)) {
    print(lineOf(change, options.dryRun ?? false))
  }
}

const DONE = { create: 'Created', reconfigure: 'Changed', keep: 'Unchanged:' } as const
const PLANNED = { create: 'Would create', reconfigure: 'Would change', keep: 'Unchanged:' } as const

function lineOf({ action, basin, stream, members }: ResourceChange, dryRun: boolean): string {
  const what = `${stream === undefined ? 'basin' : 'stream'} ${nameText({ basin, stream })}`
  const fields = members.map((member) => member.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  return `${(dryRun ? PLANNED : DONE)[action]} ${what}${fields.length === 0 ? '' : `: ${fields.join(', ')}`}`
}
