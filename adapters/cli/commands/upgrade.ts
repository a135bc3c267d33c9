import { type UpgradeReport, upgradeDirectory } from '../../storage/filesystem/index.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import {
  type DirectoryArguments,
  directoryDefinitions,
  noData,
  parseDirectoryArguments,
  workOnDirectory,
} from '../directory-work.ts'
import { quotePath } from '../errors.ts'
import { countText } from '../progress.ts'

const UPGRADE_NOTES = [
  'Rewrites files of earlier storage formats, one after the other. The disk needs space for a copy of the',
  'largest file. Earlier releases of headwater cannot read an upgraded directory: make a copy or an export',
  'first. A directory can be opened without an upgrade. Databases are upgraded when they are opened.',
  'No other process may have the directory open. Damaged data stays damaged: run `headwater verify` first.',
  'Exit code: 0 if all files have the format of this release now, 1 if it failed or a format is unknown,',
  '2 for invalid arguments, 3 if the directory contains no data, 130 and 143 if it was stopped.',
]

/** Runs `headwater upgrade`, and prints which formats it found and how many files it rewrote. */
async function upgradeCommand(args: DirectoryArguments, context: CliContext): Promise<void> {
  const { directory, json, quiet } = args
  const title = quiet || json ? undefined : 'Upgrading'
  const work = { title, stopped: 'stopped; some files may have the new format, and the directory is intact' }
  const report = await workOnDirectory(context, work, (options) => upgradeDirectory(directory, options))
  if (json) context.print(JSON.stringify(report))
  if (report.formatVersionsBefore.length === 0) throw noData(directory)
  if (!json && !quiet) context.print(summary(directory, report))
}

function summary(directory: string, { files, formatVersion, formatVersionsBefore }: UpgradeReport): string {
  if (files === 0) return `${quotePath(directory)} has format ${formatVersion}: there is nothing to upgrade`
  const before = formatVersionsBefore.filter((version) => version !== formatVersion).join(' and ')
  return `Upgraded ${countText(files, 'file')} from format ${before} to ${formatVersion}`
}

export const UPGRADE = command({
  examples: ['headwater upgrade ./data', 'headwater upgrade ./data --json'],
  notes: UPGRADE_NOTES,
  definitions: directoryDefinitions('upgrade'),
  parse: parseDirectoryArguments,
  run: upgradeCommand,
})
