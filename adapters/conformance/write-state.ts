import { type WriteState, withAppend } from '../../src/core/sequence.ts'
import { INTEGER_MAX, PRODUCERS_MAX } from '../../src/model/limits.ts'
import { conflicts } from './assertions.ts'
import { NOW } from './blocks.ts'
import type { Cases } from './harness.ts'
import { LogWriter } from './log-writer.ts'

/** The write state of a head: whether the log is closed, and what its producers have appended. */
export const writeStateCases: Cases = {
  async 'an append replaces the write state, and other appends and epochs keep it'(harness) {
    const log = await harness.log()
    await log.append()
    for (const writeState of writeStates(log)) {
      await log.append({ writeState })
      await log.check()
      await log.append()
      await log.check()
    }
    await log.extend([{ below: INTEGER_MAX, after: NOW, until: null }])
    await log.append()
    await log.check()
  },
  async 'an append that conflicts does not change the write state'(harness) {
    const log = await harness.log()
    await log.append({ writeState: { streamSeq: 'a' } })
    const stale = new LogWriter(log.session, 'a', { ...log.head, appendId: 'another' })
    await conflicts(stale.append({ writeState: { closed: true } }), 'append after another head')
    await log.check()
  },
  async 'pipelined appends replace the write state one after another'(harness) {
    const log = await harness.log()
    const appends = Array.from({ length: 40 }, (_, i) =>
      log.append(i % 5 === 4 ? {} : { writeState: afterProducer(log, `p${i % 7}`, i) }),
    )
    await Promise.all(appends)
    await log.check()
  },
  async 'a caller may modify the write state that it reads'(harness) {
    const log = await harness.log()
    await log.append({ writeState: afterProducer(log, 'p', 0) })
    log.head = structuredClone(log.head)
    const { writeState } = (await log.session.head('a'))!
    Object.assign(writeState!.producers![0]!, { epoch: 9 })
    Object.assign(writeState!.producers![0]!.start, { seqNum: 9 })
    Object.assign(writeState!, { closed: true, producers: [] })
    await log.check()
  },
  async 'a head has 1,000 producers, which appends replace and drop'(harness) {
    const log = await harness.log()
    // Of 128 bytes.
    const idOf = (i: number) => String(i).padStart(128, '0')
    let state: WriteState | undefined
    for (let i = 0; i < PRODUCERS_MAX; i++) state = afterProducer(log, idOf(i), 0, state)
    await log.append({ writeState: state })
    await log.check()
    for (const id of [idOf(500), 'new', idOf(500), idOf(999), 'newer']) {
      await log.append({ writeState: afterProducer(log, id, 1) })
      await log.check()
    }
  },
}

/** Write states in the order in which an engine might leave them. */
export function* writeStates(log: LogWriter): Generator<WriteState> {
  yield afterProducer(log, '\u{1f600}', 0)
  yield { ...log.head.writeState, streamSeq: '\u0000 \ue000' }
  yield afterProducer(log, 'p', INTEGER_MAX)
  yield afterProducer(log, '\u{1f600}', 1)
  yield afterProducer(log, 'q', 0)
}

/** The state after another append of a producer, by default to that of the head. */
export function afterProducer({ head }: LogWriter, id: string, seq: number, before = head.writeState) {
  const { tail } = head
  const end = { seqNum: tail.seqNum + 1, timestamp: Math.max(tail.timestamp, NOW) }
  return withAppend(before, { producer: { id, epoch: seq % 3, seq } }, { start: tail, end }, NOW)!
}
