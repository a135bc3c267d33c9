import fc from 'fast-check'
import { WHOLE_LOG } from '../../../../adapters/conformance/log-writer.ts'
import { verifyFiles } from '../../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import type { Collection, StoredBlock } from '../../../../src/storage/contract.ts'
import { openFiles } from '../../../storage/filesystem/open-files.ts'
import { SimulatedDisk } from '../../../storage/filesystem/simulated-disk.ts'
import { LOG_IDS, unpacked, withChecksums, writtenDirectory } from '../directories.ts'
import { checkNumbers, type Outcome, ok, settledOutcomeOf } from '../harness/assertions.ts'
import { corrupt, nothing } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'

const COLLECTIONS: readonly Collection[] = ['basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings']
const DIRECTORIES = 16

interface Contents {
  readonly blocks: readonly StoredBlock[]
}

/** Every operation that an engine performs on a directory. */
async function read(files: ReadonlyMap<string, Buffer>): Promise<Contents> {
  const disk = new SimulatedDisk(new Prng(1), files)
  const session = await openFiles(disk, { durability: 'power-loss' }, async () => {})
  try {
    const blocks: StoredBlock[] = []
    for (const collection of COLLECTIONS)
      await session.list(collection, { prefix: '', after: '', limit: 1000 })
    for (const id of LOG_IDS) {
      await session.head(id)
      blocks.push(...(await session.read(id, WHOLE_LOG)))
    }
    return { blocks }
  } finally {
    await session.close()
  }
}

/** Opens, reads and verifies a directory. Opening may fail only if verification reports damage. */
export const directories = target({
  name: 'directories',
  models: fc.nat(DIRECTORIES - 1),
  encode: writtenDirectory,
  async decode(input: Uint8Array) {
    const files = unpacked(input)
    const report = await verifyFiles(new SimulatedDisk(new Prng(1), files), { ofEngine: false })
    return { problems: report.problemCount, contents: await settledOutcomeOf(() => read(files)) }
  },
  refuses: nothing,
  verify({ problems, contents }: { readonly problems: number; readonly contents: Outcome<Contents> }) {
    if ('value' in contents) {
      checkNumbers(contents.value)
      return
    }
    if (!corrupt(contents.error)) throw contents.error
    ok(problems > 0, `verified, it has no problem; opened, it fails: ${contents.error}`)
  },
  repair: withChecksums,
  memory: { perInputByte: 100, beside: 8 * 1024 * 1024 },
  share: 3,
})
