import { memory } from '../../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../../adapters/testing/index.ts'
import { open } from '../../../src/index.ts'
import { inProcess } from '../../access-table/perform.ts'
import { describeAccessTable } from '../../access-table/run-table.ts'

describeAccessTable('what each token may do, in-process', async () => {
  const clock = virtualClock()
  const owner = await open({ storage: memory(), clock })
  return {
    owner,
    as: (token) => inProcess(owner.as(token)),
    advance: (ms) => clock.advance(ms),
    settle: () => clock.settle(),
    close: () => owner.close(),
  }
})
