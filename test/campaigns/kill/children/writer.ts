import { writeSync } from 'node:fs'
import { type Engine, open } from '../../../../src/index.ts'
import type { Durability } from '../../../../src/storage/contract.ts'
import { STORAGES, type StorageName } from './storages.ts'
import { BASIN, recordAt, STREAMS } from './stream-records.ts'

/**
 * Appends to some streams by sessions, and creates and deletes others, until it is killed. Prints what was
 * acknowledged.
 */
const [storage, directory, round, durability] = process.argv.slice(2) as [
  StorageName,
  string,
  string,
  Durability,
]
const BATCH_RECORDS_MAX = 5
const print = (line: string): void => void writeSync(1, `${line}\n`)

// Waits for its turn, because starting takes longer than being killed.
process.stdin.once('data', () => void run())

async function run(): Promise<void> {
  print('opening')
  const hw = await open({ storage: STORAGES[storage](directory, durability) })
  await hw.ensureBasin(BASIN)
  await Promise.all([...STREAMS.map((name) => write(hw, name)), createAndDelete(hw)])
}

/** As many appends in flight as the session admits. */
async function write(hw: Engine, name: string): Promise<void> {
  await hw.basin(BASIN).ensureStream(name)
  const stream = hw.basin(BASIN).stream(name)
  let { seqNum } = await stream.checkTail()
  const session = await stream.appendSession()
  session.acks$.subscribe(({ end }) => print(`${name} ${end.seqNum}`))
  for (;;) {
    const count = 1 + (seqNum % BATCH_RECORDS_MAX)
    const records = Array.from({ length: count }, (_, i) => recordAt(name, seqNum + i))
    const ticket = await session.submit(records, { matchSeqNum: seqNum })
    seqNum += count
    // Limited, because otherwise nothing would ever be acknowledged.
    if (seqNum % 7 === 0) await ticket.ack()
  }
}

async function createAndDelete(hw: Engine): Promise<void> {
  for (let serial = 0; ; serial++) {
    const name = `short-${round}-${serial}`
    print(`creating ${name}`)
    await hw.basin(BASIN).createStream(name)
    print(`created ${name}`)
    await hw.basin(BASIN).stream(name).append('one')
    if (serial % 3 === 0) continue
    print(`deleting ${name}`)
    await hw.basin(BASIN).stream(name).delete()
    print(`deleted ${name}`)
  }
}
