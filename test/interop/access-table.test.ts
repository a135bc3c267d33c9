// @module-tag slow

import { describeAccessTable } from '../support/access-table/run-table.ts'
import { testClock } from '../support/index.ts'
import { byClient } from './client-performer.ts'
import { startService } from './support.ts'

describeAccessTable('what each token may do, by the published client', async () => {
  const clock = testClock()
  const { hw, server, errors, close } = await startService({ clock, demandsTokens: true })
  return {
    owner: hw,
    as: (token) => byClient(server.url, token, () => clock.now()),
    advance: (ms) => clock.advance(ms),
    settle: () => clock.settle(),
    close: async () => {
      await close()
      if (errors.length > 0) throw new AggregateError(errors, 'something went wrong inside')
    },
  }
})
