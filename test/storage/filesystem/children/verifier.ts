import { writeSync } from 'node:fs'
import { verifyDirectory } from '../../../../adapters/storage/filesystem/index.ts'

const [directory] = process.argv.slice(2)

/** Verifies the directory, and reports the outcome. */
try {
  const { files, problems } = await verifyDirectory(directory!)
  writeSync(1, `${files} files, ${problems.length} problems\n`)
} catch (error) {
  writeSync(1, `${(error as { kind?: string }).kind}: ${(error as Error).message}\n`)
}
