import { parseArgs } from 'citty'
import { checkArguments } from './check-arguments.ts'
import { CliError } from './failure.ts'

export const VERIFY_DEFINITIONS = {
  dir: { type: 'positional', description: 'Directory of a storage that keeps its data in files' },
  json: { type: 'boolean', default: false, description: 'Print the report as JSON' },
  quiet: {
    type: 'boolean',
    default: false,
    description: 'No progress bar, no notes, no summary: only problems',
  },
} as const

export const VERIFY_NOTES = [
  'Nothing else may have the directory open meanwhile. Nothing that is stored is changed, and nothing is removed.',
  'Exit code: 0 when all is sound, 1 when there are problems or it could not be read, 2 when the command was called wrongly, 3 when nothing was written there yet.',
]

export interface VerifyArguments {
  readonly directory: string
  readonly json: boolean
  readonly quiet: boolean
}

/** @throws CliError with exit code 2. */
export function parseVerifyArguments(args: readonly string[]): VerifyArguments {
  checkArguments(args, VERIFY_DEFINITIONS, 'verify', { name: 'DIR', most: 1 })
  const { dir, json, quiet } = parseArgs<typeof VERIFY_DEFINITIONS>([...args], VERIFY_DEFINITIONS)
  if (dir === '') throw new CliError(2, 'DIR must not be empty')
  return { directory: dir!, json, quiet }
}
