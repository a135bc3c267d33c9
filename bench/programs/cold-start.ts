import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'

/** Each imports its code in the turn, in a new process. */
host({
  headwater: () => ({
    async turn() {
      const headwater = await openHeadwater()
      await streamNumber(headwater, 0).append('first')
    },
  }),
  rxjs: () => ({
    async turn() {
      await import('rxjs')
    },
  }),
})
