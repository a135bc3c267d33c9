import { describe, expect, it } from 'vitest'
import type { VirtualClock } from '../../../adapters/testing/index.ts'
import { type AppendAck, type Headwater, HeadwaterError, open } from '../../../src/index.ts'
import { testClock } from '../../test-clock.ts'
import { testStorage } from '../../test-storage.ts'
import { type Chaos, chaotic, prng, turn } from './chaotic-storage.ts'

const text = new TextDecoder()
const CERTAINLY_NOT = new Set([
  'seq_num_mismatch',
  'fencing_token_mismatch',
  'other',
  'transaction_conflict',
  'invalid',
  'stream_deletion_pending',
])

interface Sent {
  readonly id: string
  outcome: string
  seqNum?: number
  readonly writer: string
}

const codeOf = (error: unknown) => {
  if (HeadwaterError.is(error)) return error.code
  throw error
}

async function run(seed: number, shared: boolean): Promise<void> {
  const random = prng(seed)
  const chaos: Chaos = { on: false }
  const clock: VirtualClock = testClock({ now: 1_000_000 })
  const data = testStorage()
  const engines: Headwater[] = []
  for (let i = 0; i < (shared ? 3 : 1); i++) {
    engines.push(
      await open({
        storage: chaotic(data, shared, random, chaos),
        clock,
        limits: { followerLagBatches: 3 },
      }),
    )
  }
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
  await engines[0]!.ensureBasin('basin')
  await engines[0]!.basin('basin').ensureStream('main')
  await engines[0]!.basin('basin').ensureStream('gone')
  chaos.on = true
  let writing = true
  let serial = 0
  const sent: Sent[] = []
  const stranger: unknown[] = []
  const send = (writer: string): Sent => {
    const one = { id: `${writer}#${serial++}`, outcome: 'pending', writer }
    sent.push(one)
    return one
  }
  const settle = (items: readonly Sent[], acked: Promise<AppendAck>) =>
    acked.then(
      (ack) => {
        if (ack.end.seqNum - ack.start.seqNum !== items.length) stranger.push(['length', ack])
        items.forEach((item, i) => {
          item.outcome = 'acked'
          item.seqNum = ack.start.seqNum + i
        })
      },
      (error: unknown) => {
        for (const item of items) item.outcome = codeOf(error)
      },
    )

  const sessions = async (name: string) => {
    for (let s = 0; s < 12; s++) {
      const writer = `${name}.${s}`
      const session = await pick(engines)
        .basin('basin')
        .stream('main')
        .appendSession()
        .catch(() => undefined)
      if (session === undefined) continue
      const acks: number[] = []
      session.acks$.subscribe({ next: (ack) => acks.push(ack.start.seqNum), error: () => {} })
      const done: Promise<void>[] = []
      for (let i = 0; i < 15; i++) {
        const items = Array.from({ length: 1 + Math.floor(random() * 3) }, () => send(writer))
        const conditions = random() < 0.03 ? { matchSeqNum: 0 } : {}
        const ticket = session.submit(
          items.map(({ id }) => id),
          conditions,
        )
        done.push(
          settle(
            items,
            ticket.then((t) => t.ack()),
          ),
        )
        if (random() < 0.4) await turn()
      }
      if (random() < 0.5) await turn()
      const closed = session.close().catch(codeOf)
      await Promise.all(done)
      await closed
      if (acks.some((seqNum, i) => i > 0 && seqNum <= acks[i - 1]!))
        stranger.push(['acks out of order', acks])
    }
  }
  const producers = async (name: string) => {
    for (let s = 0; s < 6; s++) {
      const writer = `${name}.${s}`
      const producer = pick(engines)
        .basin('basin')
        .stream('main')
        .producer({ lingerMs: Math.floor(random() * 4), recordsMax: 1 + Math.floor(random() * 6) })
      const done: Promise<void>[] = []
      for (let i = 0; i < 30; i++) {
        const item = send(writer)
        done.push(
          producer
            .submit(item.id)
            .then((ticket) => ticket.ack())
            .then(
              ({ seqNum }) => {
                item.outcome = 'acked'
                item.seqNum = seqNum
              },
              (error: unknown) => {
                item.outcome = codeOf(error)
              },
            ),
        )
        if (random() < 0.4) await turn()
      }
      await producer.close().catch(codeOf)
      await Promise.all(done)
    }
  }
  const singles = async (name: string) => {
    const engine = pick(engines)
    const done: Promise<void>[] = []
    for (let i = 0; i < 120; i++) {
      const item = send(`${name}.${i}`)
      const stream = engine.basin('basin').stream('main')
      const guess = random() < 0.2 ? { matchSeqNum: Math.floor(random() * 600) } : {}
      done.push(settle([item], stream.append(item.id, guess)))
      if (random() < 0.5) await turn()
    }
    await Promise.all(done)
  }
  const compareAndSet = async (name: string) => {
    const stream = pick(engines).basin('basin').stream('main')
    for (let i = 0; i < 40; i++) {
      const item = send(`${name}.${i}`)
      const tail = await stream.checkTail().catch(() => undefined)
      if (tail === undefined) {
        item.outcome = 'other'
        continue
      }
      await settle([item], stream.append(item.id, { matchSeqNum: tail.seqNum }))
      if (item.outcome === 'acked' && item.seqNum !== tail.seqNum) stranger.push(['cas', item, tail])
    }
  }
  const reconfigurers = async () => {
    while (writing) {
      for (let n = 0; n < 20; n++) await turn()
      await pick(engines)
        .basin('basin')
        .reconfigureStream('main', { retentionPolicy: { ageSeconds: 100_000 + Math.floor(random() * 1000) } })
        .catch(codeOf)
    }
  }
  const deleters = async () => {
    while (writing) {
      for (let n = 0; n < 30; n++) await turn()
      await pick(engines).basin('basin').deleteStream('gone').catch(codeOf)
    }
  }
  const goneWriters = async (name: string) => {
    for (let s = 0; s < 12; s++) {
      const stream = pick(engines).basin('basin').stream('gone')
      const session = await stream.appendSession().catch(codeOf)
      if (typeof session === 'string') continue
      const done: Promise<unknown>[] = []
      for (let i = 0; i < 10; i++) {
        done.push(
          session
            .submit(`${name}.${s}#${i}`)
            .then((t) => t.ack())
            .catch(codeOf),
        )
        done.push(stream.append(`${name}.x${s}#${i}`).catch(codeOf))
        await turn()
      }
      await session.close().catch(codeOf)
      await Promise.all(done)
    }
  }
  const goneFollower = async (engine: Headwater) => {
    while (writing) {
      let next = 0
      try {
        for await (const batch of engine.basin('basin').stream('gone').read({ seqNum: 0, waitSeconds: 1 })) {
          for (const record of batch.records)
            if (record.seqNum !== next++) stranger.push(['gone follower', record.seqNum, next])
          if (random() < 0.2) await turn()
        }
      } catch (error) {
        codeOf(error)
      }
      await turn()
    }
  }
  const seen: { readonly engine: number; readonly bodies: string[] }[] = []
  let target = Number.POSITIVE_INFINITY
  const follower = async (index: number) => {
    const bodies: string[] = []
    seen.push({ engine: index, bodies })
    const stream = engines[index]!.basin('basin').stream('main')
    while (bodies.length < target) {
      try {
        for await (const batch of stream.read({ seqNum: bodies.length, waitSeconds: 1, clamp: true })) {
          for (const { seqNum, body } of batch.records) {
            if (seqNum !== bodies.length) stranger.push(['follower', seqNum, bodies.length])
            bodies.push(text.decode(body))
          }
          if (random() < 0.3) for (let n = random() * 8; n > 0; n--) await turn()
          if (random() < 0.02) break
        }
      } catch (error) {
        const code = codeOf(error)
        if (code !== 'storage') stranger.push(['follower error', code])
      }
      await turn()
    }
  }

  const background = [reconfigurers(), deleters()]
  const readers: Promise<void>[] = engines.flatMap((_, i) => [follower(i), follower(i)])
  const goneReaders = engines.map(goneFollower)
  let ticking = true
  const ticker = (async () => {
    while (ticking) {
      await clock.advance(2)
      await turn()
    }
  })()
  await Promise.all([
    sessions('s1'),
    sessions('s2'),
    sessions('s3'),
    producers('p1'),
    producers('p2'),
    singles('a1'),
    singles('a2'),
    compareAndSet('c1'),
    compareAndSet('c2'),
    goneWriters('g1'),
    goneWriters('g2'),
  ])
  writing = false
  await Promise.all(background)
  for (let n = 0; n < 20; n++) await turn()
  chaos.on = false
  const fresh = await open({ storage: data, clock })
  const stored: string[] = []
  const { seqNum: tail } = await fresh.basin('basin').stream('main').checkTail()
  for await (const batch of fresh.basin('basin').stream('main').read({ seqNum: 0, count: tail })) {
    for (const { seqNum, body } of batch.records) {
      if (seqNum !== stored.length) stranger.push(['not dense', seqNum, stored.length])
      stored.push(text.decode(body))
    }
  }
  target = tail
  // An append that wakes those who wait at the tail, so that they see that they are at the target.
  const readersDone = Promise.all(readers)
  await clock.advance('3s')
  await readersDone
  await Promise.all(goneReaders)
  ticking = false
  await ticker

  const problems: unknown[] = [...stranger]
  const at = new Map<string, number[]>()
  for (const [i, id] of stored.entries()) at.set(id, [...(at.get(id) ?? []), i])
  if (stored.length !== tail) problems.push(['stored', stored.length, tail])
  for (const { id, outcome, seqNum } of sent) {
    const places = at.get(id) ?? []
    if (places.length > 1) problems.push(['twice', id, places])
    if (outcome === 'pending') problems.push(['never settled', id])
    if (outcome === 'acked' && places[0] !== seqNum) problems.push(['acked elsewhere', id, seqNum, places])
    if (CERTAINLY_NOT.has(outcome) && places.length > 0)
      problems.push(['refused but stored', id, outcome, places])
  }
  const writers = new Map<string, Sent[]>()
  for (const one of sent) writers.set(one.writer, [...(writers.get(one.writer) ?? []), one])
  for (const items of writers.values()) {
    let lastAt = -1
    let failed: Sent | undefined
    for (const item of items) {
      const place = at.get(item.id)?.[0]
      if (place !== undefined) {
        if (place <= lastAt) problems.push(['order', item.id, place, lastAt])
        if (failed !== undefined && at.get(failed.id) === undefined)
          problems.push(['behind a failed one', failed, item])
        lastAt = place
      }
      if (item.outcome !== 'acked') failed ??= item
    }
  }
  for (const { engine, bodies } of seen) {
    const wrong = bodies.findIndex((body, i) => body !== stored[i])
    if (wrong >= 0 || bodies.length !== stored.length)
      problems.push(['follower differs', engine, wrong, bodies.length, stored.length])
  }
  for (const hw of engines) {
    const { cachedStreams: _, ...stats } = hw.stats()
    const idle = {
      openSessions: 0,
      openReads: 0,
      waitingReads: 0,
      pendingAppends: 0,
      appendBytesInFlight: 0,
      waitingAppends: 0,
      waitingAppendBytes: 0,
    }
    if (JSON.stringify(stats) !== JSON.stringify(idle)) problems.push(['stats', stats])
  }
  await Promise.all([...engines, fresh].map((hw) => hw.close()))
  if (clock.pending !== 0) problems.push(['timers', clock.pending])
  const outcomes: Record<string, number> = {}
  for (const { outcome } of sent) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
  if (process.env.SHOW) console.log(seed, shared, tail, outcomes)
  expect(problems.slice(0, 10), `seed ${seed}`).toEqual([])
}

describe('random stress', () => {
  const from = Number(process.env.SEED ?? 1)
  const runs = Number(process.env.RUNS ?? 4)
  for (const shared of [true, false]) {
    for (let seed = from; seed < from + runs; seed++) {
      it(`shared: ${shared}, seed ${seed}`, () => run(seed, shared), 60_000)
    }
  }
})
