import { expect, onTestFinished, test } from 'vitest'
import { coordinateInThread } from '../../adapters/sync/coordinator.ts'
import { outbox } from '../../adapters/sync/index.ts'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { Prng } from '../../src/runtime/prng.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import { originValue } from '../../src/sync/origin.ts'
import { recentWriters } from '../../src/sync/outbox-plan.ts'
import { openDevice, openServer } from './mirrored.ts'

function recordOf(device: string | undefined, seqNum: number, timestamp: number): SequencedRecord {
  const origin = device && originValue({ device, number: seqNum })
  const headers = origin ? [[utf8('headwater-origin'), utf8(origin)] as const] : []
  return { seqNum, timestamp, headers, body: utf8('') }
}

test('the pause between attempts grows with the number of writers, and has a limit', () => {
  expect(contentionMs(0, 100, 0.5)).toBe(0)
  expect(contentionMs(1, 100, 0)).toBe(0)
  expect(contentionMs(10, 100, 0.5)).toBe(500)
  expect(contentionMs(20, 100, 0.5)).toBe(1_000)
  expect(contentionMs(1_000, 1_000, 0.5)).toBe(5_000)
})

test('writers are counted by device, those without an outbox as one, and without this device', () => {
  const devices = ['a', 'b', undefined, 'a', 'own', undefined]
  const records = devices.map((device, seqNum) => recordOf(device, seqNum, 1_000))
  const writers = recentWriters(new Map(), records, 'own', 1_000)
  expect([...writers.keys()]).toEqual(['a', 'b', ''])
  const later = recentWriters(writers, [recordOf('a', 6, 6_000)], 'own', 6_001)
  expect([...later.keys()]).toEqual(['a'])
})

test('at most 1,000 writers are counted', () => {
  const records = Array.from({ length: 2_000 }, (_, index) => recordOf(`device${index}`, index, 1_000))
  expect(recentWriters(new Map(), records, 'own', 1_000).size).toBe(1_000)
})

test.each([
  // If all of them competed for each place, there would be 4,500.
  ['ignores producers', 1_500],
  ['supports producers', 450],
])(
  'thirty devices at once make few attempts that fail on a server that %s, and all make progress',
  async (kind, attemptsMax) => {
    const [count, rounds] = [30, 10]
    const server = await openServer()
    server.settings.ignoresProducers = kind === 'ignores producers'
    await server.stream.readBatch({}, { create: true })
    server.network.delay(20)
    const prng = new Prng(1)
    let attempts = 0
    const boxes = await Promise.all(
      Array.from({ length: count }, async () => {
        const { hw, remote } = await openDevice(server)
        const append = remote.append.bind(remote)
        remote.append = (...given: Parameters<typeof append>) => {
          attempts++
          return append(...given)
        }
        const log = hw.basin('basin').stream('.outbox/stream')
        const box = outbox(log, remote, { coordinator: coordinateInThread, random: () => prng.next() })
        onTestFinished(() => box.close())
        return box
      }),
    )
    const confirmed = boxes.map(() => 0)
    const total = () => confirmed.reduce((sum, each) => sum + each, 0)
    const running = boxes.map(async (box, device) => {
      for (let round = 0; round < rounds; round++) {
        const appended = await box.append(`${device}/${round}`)
        await appended.confirmed()
        confirmed[device]!++
      }
    })
    for (let second = 0; second < 600 && total() < count * rounds; second++) await server.clock.advance(1_000)
    await Promise.all(running)
    const bodies = (await server.stream.read().toArray()).map(({ body }) => body)
    for (const device of boxes.keys()) {
      const own = bodies.filter((body) => body.startsWith(`${device}/`))
      expect(own).toEqual(Array.from({ length: rounds }, (_, round) => `${device}/${round}`))
    }
    expect(attempts).toBeLessThan(attemptsMax)
  },
)
