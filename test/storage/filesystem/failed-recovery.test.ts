import { expect, test } from 'vitest'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const ROLL_BYTES = 3000

test('a failed opening leaves neither new nor open files', async () => {
  const crashed = await crashedDisk()
  await crashed.unlink(crashed.names.find((name) => name.startsWith('segment'))!)
  let open = 0
  const files = hookedFiles(crashed, (operation) => {
    if (operation === 'open') open++
    if (operation === 'close') open--
  })
  const { names } = crashed
  for (let i = 0; i < 3; i++) {
    await expect(openSimulated(files, ROLL_BYTES)).rejects.toMatchObject({ kind: 'corrupt' })
  }
  expect(open).toBe(0)
  expect(crashed.names).toEqual(names)
})

test('an opening succeeds although an unused file cannot be removed', async () => {
  const crashed = await crashedDisk()
  await (await crashed.open('checkpoint-0000000001', 'create')).close()
  const files = hookedFiles(crashed, (operation, name) => {
    if (operation === 'unlink' && name === 'checkpoint-0000000001') throw systemError('EIO')
  })
  await (await openSimulated(files, ROLL_BYTES)).close()
  expect(crashed.names).toContain('checkpoint-0000000001')
  await (await openSimulated(crashed, ROLL_BYTES)).close()
  expect(crashed.names).not.toContain('checkpoint-0000000001')
})

/** With a checkpoint, a segment, and a last group that an opening has to write again. */
async function crashedDisk(): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(new Prng(1))
  const session = await openSimulated(disk, ROLL_BYTES)
  const writer = await LogWriter.create(session, 'a')
  const isRolled = () =>
    /checkpoint-\d+(?!\.)\b/.test(disk.names[0]!) && !disk.names.includes('journal-0000000001')
  while (!isRolled()) await writer.append({ bodyBytes: 200 })
  await writer.append()
  return disk.crashedAfter(disk.length, 'nothing', new Prng(1))
}
