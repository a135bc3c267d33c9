import { expect, test } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { temporaryDirectory } from './directories.ts'

test('a reopened engine finds its streams and continues', { tags: ['slow'] }, async () => {
  const directory = await temporaryDirectory()
  for (let round = 0; round < 3; round++) {
    const hw = await open({ storage: filesystem(directory) })
    // Names never become paths.
    for (const name of ['../../escape', 'a/b\\c', 'nul', 'ünïcode \u{1f600}']) {
      const stream = hw.basin('my-app').stream(name)
      const { start } = await stream.append([`${round} of ${name}`, 'second'])
      expect(start.seqNum).toBe(2 * round)
    }
    await hw.close()
  }
  const hw = await open({ storage: filesystem(directory) })
  const bodies: string[] = []
  for await (const batch of hw
    .basin('my-app')
    .stream('../../escape')
    .read({ seqNum: 0, count: 6 })
    .batches()) {
    bodies.push(...batch.records.map(({ body }) => body))
  }
  expect(bodies).toEqual([0, 1, 2].flatMap((round) => [`${round} of ../../escape`, 'second']))
  await hw.close()
})

test('closing an engine leaves no timer armed', async () => {
  const clock = virtualClock()
  const hw = await open({ storage: filesystem(await temporaryDirectory()), clock })
  await hw.basin('my-app').stream('a').append('one')
  await hw.close()
  expect(clock.pending).toBe(0)
})

test.each([[''], [undefined], [5]])('needs the path of a directory, not %j', (path) => {
  // An empty path would be that of the working directory.
  expect(() => filesystem(path as never)).toThrow(
    expect.objectContaining({ code: 'invalid', message: 'filesystem needs the path of a directory' }),
  )
})
