import { expect, it } from 'vitest'
import { GroupCommit } from '../../src/storage/group-commit.ts'

/** Writes numbers, each as many bytes long; 13 fails. Returns the groups that were written. */
function recorder(bytesMax: number) {
  const groups: number[][] = []
  const group = new GroupCommit<number>(
    async (items) => {
      groups.push(items.map(({ item }) => item))
      await new Promise((resolve) => setImmediate(resolve))
      for (const { item, resolve, reject } of items) {
        if (item === 13) reject(new Error('13'))
        else resolve()
      }
    },
    (item) => item,
    bytesMax,
  )
  return { groups, group }
}

it('writes the items of one turn together, and those that arrive meanwhile next', async () => {
  const { groups, group } = recorder(1_000)
  const first = [group.add(1), group.add(2)]
  await Promise.resolve()
  await Promise.resolve()
  const later = [group.add(3), group.add(4)]
  await Promise.all([...first, ...later])
  await group.add(5)
  expect(groups).toEqual([[1, 2], [3, 4], [5]])
})

it('limits the size of a group, except for a single item', async () => {
  const { groups, group } = recorder(10)
  await Promise.all([4, 6, 1, 25, 9, 2].map((item) => group.add(item)))
  expect(groups).toEqual([[4, 6], [1], [25], [9], [2]])
})

it('settles each item on its own', async () => {
  const { group } = recorder(1_000)
  const results = await Promise.allSettled([group.add(1), group.add(13), group.add(2)])
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})
