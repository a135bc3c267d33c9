import type { Stream } from '../../../../src/index.ts'
import type { AppendAck } from '../../../../src/model/info.ts'
import { conditionsOf, failedAppend, inputsOf } from './engine-client.ts'
import { type Ack, PipelinedAppends } from './pipelined-appends.ts'

/** The appends of clients in the process of the engine that share a session. */
export function engineSession(stream: Stream): PipelinedAppends {
  const open = async () => {
    const session = await stream.appendSession()
    return {
      submit: async (call: Parameters<typeof inputsOf>[0]) => {
        const ticket = await session.submit(inputsOf(call), conditionsOf(call))
        return { ack: async () => numbersOf(await ticket.ack()) }
      },
      close: () => session.close(),
    }
  }
  return new PipelinedAppends(open, failedAppend)
}

function numbersOf({ start, end, tail }: AppendAck): Ack {
  return { start: start.seqNum, end: end.seqNum, tail: tail.seqNum }
}
