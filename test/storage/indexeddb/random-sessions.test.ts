// @module-tag slow

import 'fake-indexeddb/auto'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { NOW, recordsOfBlocks, seqNumsOf, WHOLE_LOG } from '../../../adapters/conformance/blocks.ts'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { Prng } from '../../../src/runtime/random.ts'
import { StorageConflict, StorageFailure } from '../../../src/storage/errors.ts'
import { type Fault, injectFaults, limitSpace } from './faults.ts'

afterEach(() => {
  injectFaults([])
  limitSpace(undefined)
})

const FAULTS: readonly Fault[] = ['abort', 'close', 'lose-answer']
/** One without faults, one with a quota, and one with faults. */
const SEEDS = [5, 6, 7]
const ROUNDS = 25

describe('random operations of three sessions on two logs', () => {
  it.each(SEEDS)('lose and duplicate nothing (seed %i)', async (seed) => {
    const prng = new Prng(seed)
    const withFaults = prng.below(2) === 0
    const withQuota = !withFaults && prng.below(2) === 0
    const name = `random-${seed}`
    const sessions = await Promise.all(
      [0, 1, 2].map(async () => {
        const session = await indexedDb(name).open({ clock: systemClock, onLogChanged: () => {} })
        onTestFinished(() => session.close())
        return session
      }),
    )
    const logs = ['a', 'b']
    for (const logId of logs) await LogWriter.create(sessions[0]!, logId)
    const made = new Map<string, { expiresAt: number | null; logId: string }>()
    const refused = new Set<string>()
    let epoch = 1
    let reclaimedAt = 0
    let trimAt = 0
    for (let round = 0; round < ROUNDS; round++) {
      const jobs: (() => Promise<void>)[] = []
      const jobsMax = 1 + prng.below(4)
      for (let j = 0; j < jobsMax; j++) {
        const session = prng.pick(sessions)
        const kind = prng.below(12)
        if (kind < 9) {
          const logId = prng.pick(logs)
          const head = (await sessions[prng.below(3)]!.head(logId))!
          const writer = new LogWriter(session, logId, head)
          const group = 1 + prng.below(4)
          for (let g = 0; g < group; g++) {
            const tag = `${round}.${j}.${g}`
            const spec = {
              tag,
              count: prng.pick([1, 1, 1, 2, 5, 16, 17]),
              bodyBytes: prng.pick([undefined, undefined, 30, 400, 2500]) as number | undefined,
              expiresAt: prng.pick([null, NOW + round + prng.below(30), NOW + prng.below(100)]),
              ...(prng.below(15) === 0 && { fencingToken: tag }),
              ...(prng.below(15) === 0 && { trimPoint: head.trimPoint, trimmedAt: ++trimAt }),
            }
            const request = writer.request(spec)
            jobs.push(async () => {
              await session.append(request).then(
                () => {
                  made.set(tag, { expiresAt: spec.expiresAt, logId })
                },
                (error) => {
                  if (StorageConflict.is(error) || (StorageFailure.is(error) && error.nothingWritten))
                    refused.add(tag)
                  else expect(StorageFailure.is(error)).toBe(true)
                },
              )
            })
          }
        } else if (kind === 9) {
          const logId = prng.pick(logs)
          jobs.push(async () => {
            await session.commit([{ kind: 'set-epoch', logId, epoch: ++epoch }]).catch(() => {})
          })
        } else if (kind === 10) {
          const now = NOW + prng.below(round + 10)
          reclaimedAt = Math.max(reclaimedAt, now)
          jobs.push(async () => {
            await session.reclaim({ now, trimmedBefore: 0, blocksMax: 1 + prng.below(20) }).catch(() => {})
          })
        } else {
          const logId = prng.pick(logs)
          jobs.push(async () => {
            const blocks = await session.read(logId, WHOLE_LOG)
            const nums = seqNumsOf(blocks)
            expect(nums).toEqual([...new Set(nums)].sort((a, b) => a - b))
          })
        }
      }
      if (withFaults) injectFaults(jobs.map(() => prng.pick([undefined, undefined, undefined, ...FAULTS])))
      if (withQuota) limitSpace(prng.pick([undefined, undefined, 300, 3000]))
      await Promise.all(jobs.map((job) => job()))
      injectFaults([])
      limitSpace(undefined)
      for (const logId of logs) {
        const heads = await Promise.all(sessions.map((s) => s.head(logId)))
        expect(heads[1]).toEqual(heads[0])
        const blocks = await sessions[0]!.read(logId, WHOLE_LOG)
        const [measured] = await sessions[1]!.measure([logId])
        expect(measured).toBe(blocks.reduce((sum, b) => sum + b.meteredBytes, 0))
        // Random partial reads agree with the whole.
        const from = prng.below(heads[0]!.tail.seqNum + 3)
        const part = await sessions[2]!.read(logId, {
          ...WHOLE_LOG,
          from: { seqNum: from },
          recordsMax: 1 + prng.below(30),
          endSeqNum: from + prng.below(60),
        })
        const whole = seqNumsOf(blocks)
        const partial = seqNumsOf(part)
        const start = whole.indexOf(partial[0]!)
        if (partial.length > 0) expect(whole.slice(start, start + partial.length)).toEqual(partial)
        // The body of a record contains the tag of its append, and the sequence number that it asked for.
        const bodies = recordsOfBlocks(blocks).map(({ body }) => /[\d.]+#\d+/.exec(lossyTextOf(body))![0])
        expect(new Set(bodies).size).toBe(bodies.length)
        const text = bodies.map((body) => body.split('#')[0]!)
        for (const tag of text) expect(refused.has(tag), tag).toBe(false)
        const there = new Set(text)
        for (const [tag, { expiresAt, logId: id }] of made) {
          if (id !== logId) continue
          if (expiresAt === null || expiresAt > reclaimedAt)
            expect(there.has(tag), `${tag} of ${logId} in round ${round}`).toBe(true)
        }
        // No holes but expired ones: the last sequence number is below the tail.
        if (whole.length > 0) expect(whole.at(-1)!).toBeLessThan(heads[0]!.tail.seqNum)
      }
    }
    for (;;)
      if (!(await sessions[0]!.reclaim({ now: NOW + 100_000, trimmedBefore: 0, blocksMax: 1000 })).more) break
    for (const logId of logs) {
      const [first] = await sessions[1]!.read(logId, WHOLE_LOG)
      expect(first?.expiresAt ?? null).toBeNull()
    }
    expect(made.size).toBeGreaterThan(10)
  })
})
