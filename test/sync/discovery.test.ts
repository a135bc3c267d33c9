import { expect, test } from 'vitest'
import { Discovery } from '../../adapters/sync/discovery.ts'
import { virtualClock } from '../../adapters/testing/index.ts'

test('a run whose list returns after its end leaves the pause of the next run alone', async () => {
  const clock = virtualClock()
  const lists: (() => void)[] = []
  const discovery = new Discovery({
    list: () => new Promise((resolve) => lists.push(resolve)),
    everyMs: 30_000,
    clock,
    random: () => 0.5,
    wakeUps: () => () => {},
    onState: () => {},
  })
  const [ended, current] = [new AbortController(), new AbortController()]
  const runs = [discovery.run(ended.signal)]
  ended.abort()
  runs.push(discovery.run(current.signal))
  lists[1]!()
  await clock.settle()
  lists[0]!()
  await clock.settle()
  discovery.retry()
  await clock.settle()
  expect(lists).toHaveLength(3)
  current.abort()
  lists[2]!()
  await Promise.all(runs)
})
