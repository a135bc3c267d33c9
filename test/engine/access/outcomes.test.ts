import { open } from '../../../src/index.ts'
import { inProcess } from '../../access-table/perform.ts'
import { describeAccessTable } from '../../access-table/run-table.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'

describeAccessTable('what each token may do, in-process', async () => {
  const clock = testClock()
  const owner = await open({ storage: testStorage(), clock })
  return {
    owner,
    as: (token) => inProcess(owner.as(token)),
    advance: (ms) => clock.advance(ms),
    settle: () => clock.settle(),
    close: () => owner.close(),
  }
})
