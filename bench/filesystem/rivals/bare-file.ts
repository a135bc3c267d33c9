import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { timed } from '../../harness/compare.ts'

/** The least that could make bytes durable: piece after piece is written at the end of a file and synced. Resolves to the milliseconds for `count` pieces. */
export async function writeAndSync(directory: string, count: number, piece: Uint8Array): Promise<number> {
  const file = await open(join(directory, 'log'), 'w')
  const writeOne = async (index: number): Promise<void> => {
    await file.write(piece, 0, piece.length, index * piece.length)
    await file.datasync()
  }
  await writeOne(0)
  const time = await timed(async () => {
    for (let index = 1; index <= count; index++) await writeOne(index)
  })
  await file.close()
  return time
}
