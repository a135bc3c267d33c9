import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { type Engine, HeadwaterError, open } from '../../../src/index.ts'
import type { Durability } from '../../../src/storage/contract.ts'

let hw: Engine

export async function openEngine(name: string, durability: Durability): Promise<void> {
  hw = await open({ storage: indexedDb(name, { durability }) })
}

export async function closeEngine(): Promise<void> {
  await hw.close()
}

/** Repeats the call while the other tab was always faster, as the error advises. */
async function patiently<Result>(call: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      if (!(HeadwaterError.is(error) && error.code === 'transaction_conflict')) throw error
    }
  }
}

/** The outcome of a conditional append. */
type Outcome = 'won' | 'lost' | 'fenced'

/** Counts outcomes, and fails when anything else happens. */
async function outcomeOf(append: Promise<unknown>): Promise<Outcome> {
  try {
    await append
    return 'won'
  } catch (error) {
    if (HeadwaterError.is(error) && error.code === 'seq_num_mismatch') return 'lost'
    if (HeadwaterError.is(error) && error.code === 'fencing_token_mismatch') return 'fenced'
    throw error
  }
}

/**
 * Appends at every sequence number below `count`, each on condition that it is the next one. Resolves to
 * those that it won.
 */
export async function race(stream: string, name: string, count: number): Promise<number[]> {
  const log = hw.basin('b').stream(stream)
  const won: number[] = []
  for (let seqNum = 0; seqNum < count; seqNum++) {
    const outcome = await outcomeOf(patiently(() => log.append(`${name} ${seqNum}`, { matchSeqNum: seqNum })))
    if (outcome === 'won') won.push(seqNum)
    if (outcome === 'fenced') throw new Error('this test sets no fencing token')
  }
  return won
}

/**
 * Takes the stream over by fencing it, `rounds` times, and appends under that token until it is fenced off,
 * at most `count` times. Resolves to the bodies that were acknowledged.
 */
export async function fight(stream: string, name: string, rounds: number, count: number): Promise<string[]> {
  const log = hw.basin('b').stream(stream)
  const made: string[] = []
  for (let round = 0; round < rounds; round++) {
    const fencingToken = `${name} ${round}`
    await patiently(() => log.fence(fencingToken))
    for (let i = 0; i < count; i++) {
      const body = `${fencingToken} ${i}`
      const outcome = await outcomeOf(patiently(() => log.append(body, { fencingToken })))
      if (outcome !== 'won') break
      made.push(body)
    }
  }
  return made
}

/** All records, commands as `fence TOKEN`. */
export async function readAll(stream: string): Promise<string[]> {
  const log = hw.basin('b').stream(stream)
  const { seqNum } = await log.checkTail()
  const all: string[] = []
  for await (const batch of log.read({ seqNum: 0, count: seqNum }).batches()) {
    for (const { headers, body } of batch.records) all.push(headers.length > 0 ? `fence ${body}` : body)
  }
  return all
}
