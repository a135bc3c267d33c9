import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'headwater'
import { expect, onTestFinished, test } from 'vitest'
import { level } from './level.ts'

async function temporaryDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'level-storage-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

async function bodiesOf(directory: string): Promise<string[]> {
  const hw = await open({ storage: level(directory) })
  try {
    const { records } = await hw.basin('app').stream('log').readBatch()
    return records.map(({ body }) => body)
  } finally {
    await hw.close()
  }
}

test('records are there after the database was closed and opened again', async () => {
  const directory = await temporaryDirectory()
  const hw = await open({ storage: level(directory) })
  const stream = hw.basin('app').stream('log')
  await Promise.all(['a', 'b', 'c'].map((body) => stream.append(body)))
  await hw.close()
  expect(await bodiesOf(directory)).toEqual(['a', 'b', 'c'])
})

test('a large batch is stored apart from its numbers, and read from the middle', async () => {
  const directory = await temporaryDirectory()
  const hw = await open({ storage: level(directory) })
  const stream = hw.basin('app').stream('log')
  await stream.append(Array.from({ length: 500 }, (_, index) => ({ body: `${index}`.padEnd(1_000, '.') })))
  const { records } = await stream.readBatch({ seqNum: 321, count: 1 })
  expect(records.map(({ body }) => Number.parseInt(body, 10))).toEqual([321])
  await hw.close()
})

test('another engine cannot open the database meanwhile, and the failure names the cause', async () => {
  const directory = await temporaryDirectory()
  const hw = await open({ storage: level(directory) })
  await expect(open({ storage: level(directory) })).rejects.toMatchObject({
    code: 'storage',
    message: expect.stringContaining('LOCK'),
  })
  await hw.close()
  const next = await open({ storage: level(directory) })
  await next.close()
})
