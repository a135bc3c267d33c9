import { describe, expect, onTestFinished, test } from 'vitest'
import { type Fold, fold } from '../../adapters/fold/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { foldText, logOf, openLog, reopened } from './fold-support.ts'

describe('trimmed history', () => {
  test('that no snapshot covers is an error with the first record left', async () => {
    const { log } = await openLog()
    await log.append(['a', 'b', 'c'])
    await log.trim(2)
    const text = foldText(log)
    await expect(text.loaded()).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 2 })
    await log.trim(4)
    await expect(foldText(log).loaded()).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 4 })
  })

  test('is an error for values of JSON too, and command records are none', async () => {
    const { log } = await openLog()
    const options = { initial: 0, reduce: (n: number) => n + 1, version: 1 }
    await log.fence('')
    await log.json().append('a')
    await using whole = fold(log.json(), options)
    expect(await whole.loaded()).toBe(1)
    await log.trim(1)
    await using rest = fold(log.json(), options)
    await expect(rest.loaded()).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 1 })
  })

  test('is covered by a snapshot', async () => {
    const { log } = await openLog()
    await log.append(['a', 'b', 'c'])
    await reopened(log, { snapshotEvery: 1 })
    await log.trim(3)
    await log.append('d')
    expect(await reopened(log)).toEqual({ value: 'a b c d ', calls: 1 })
    await log.trim(5)
    expect(await reopened(log, { version: 2, trimmed: 'skip' })).toEqual({ value: '', calls: 0 })
    await expect(foldText(log, { version: 2 }).loaded()).rejects.toMatchObject({ code: 'history_trimmed' })
  })

  test('is skipped if the app says so', async () => {
    const { log, clock } = await openLog()
    await log.append(['a', 'b', 'c'])
    await log.trim(2)
    const text = foldText(log, { trimmed: 'skip' })
    expect(await text.loaded()).toBe('c ')
    await log.append('d')
    await clock.settle()
    expect(text).toMatchObject({ value: 'c d ', position: 5 })
  })

  test('names the failure of the snapshot that may cover it', async () => {
    const storage = faultyStorage(memory())
    const { log } = await openLog(storage)
    await log.append(['a', 'b', 'c'])
    await reopened(log, { snapshotEvery: 1 })
    await log.trim(3)
    const other = await open({ storage })
    onTestFinished(() => other.close())
    storage.failNext('read', { kind: 'io' })
    const text: Fold<string> = foldText(logOf(other), { onSnapshotError: () => {} })
    const cause = expect.objectContaining({ code: 'storage' })
    await expect(text.loaded()).rejects.toMatchObject({ code: 'history_trimmed', cause })
  })
})
