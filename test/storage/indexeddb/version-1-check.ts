import { equal } from '../../../adapters/conformance/assertions.ts'
import { seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { VERSION_1_BLOCKS, VERSION_1_HEAD } from './version-1.ts'

/**
 * Throws unless a database made by `makeVersion1` is complete and usable. Works in pages, without a test
 * runner.
 */
export async function checkVersion1(session: StorageSession): Promise<void> {
  equal(await session.get('streams', 'kept'), { key: 'kept', value: { a: [1] }, version: 7 }, 'document')
  await session.commit([{ kind: 'put', collection: 'streams', key: 'new', value: 0 }])
  equal((await session.get('streams', 'new'))?.version, 10, 'the next version')

  equal(await session.head('a'), VERSION_1_HEAD, 'head')
  equal(await session.read('a', WHOLE_LOG), VERSION_1_BLOCKS, 'blocks')
  for (const [index, { lastTimestamp }] of VERSION_1_BLOCKS.entries()) {
    const found = await session.read('a', { ...WHOLE_LOG, from: { timestamp: lastTimestamp } })
    equal(found, VERSION_1_BLOCKS.slice(index), `blocks from timestamp ${lastTimestamp}`)
  }
  const bytes = VERSION_1_BLOCKS.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0)
  equal(await session.measure(['a']), [bytes], 'metered bytes')
  equal(await session.read('gone', WHOLE_LOG), [], 'blocks of the deleted log')

  const writer = new LogWriter(session, 'a', VERSION_1_HEAD)
  await writer.append({ count: 2, timestamp: 600 })
  equal(await session.head('a'), writer.head, 'head after an append')

  const freed = await session.reclaim({ now: 9_000, trimmedBefore: 550, blocksMax: 100 })
  equal(freed, { more: false, logIds: ['a'] }, 'what is reclaimed')
  const kept = [...Array.from({ length: 104 }, (_, i) => i + 2), 110, 111]
  equal(seqNumsOf(await session.read('a', WHOLE_LOG)), kept, 'records that are left')
}
