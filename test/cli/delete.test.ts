import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { resultOf, service } from './run.ts'

it.each([
  ['yes', [], true],
  ['n', [], false],
  ['', [], false],
  ['n', ['--force'], true],
])('delete on a terminal with the answer %j and %j deletes: %s', async (answer, options, isDeleted) => {
  const { hw, world } = await service({ open: true })
  await hw.createBasin('app-logs')
  const terminal = () => Object.assign(Readable.from([Buffer.from(`${answer}\n`)]), { isTTY: true })
  const { exitCode } = await resultOf(['delete', 'app-logs', ...options], { ...world, input: terminal })
  expect(exitCode).toBe(isDeleted ? 0 : 1)
  const { items } = await hw.listBasins()
  expect(items.filter(({ state }) => state === 'active')).toHaveLength(isDeleted ? 0 : 1)
})
