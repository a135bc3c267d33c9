import { expect, test } from 'vitest'
import { utf8 } from '../../src/model/bytes.ts'
import type { SequencedRecord } from '../../src/model/record.ts'
import { contentionMs } from '../../src/sync/back-off.ts'
import { originValue } from '../../src/sync/origin.ts'
import { recentWriters } from '../../src/sync/outbox-plan.ts'

function recordOf(device: string | undefined, seqNum: number, timestamp: number): SequencedRecord {
  const origin = device && originValue({ device, number: seqNum, nonce: 'nonce' })
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
