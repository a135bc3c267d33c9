import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { StreamChange } from '../../src/sync/changes.ts'
import { type FoldedRecord, type FoldState, foldChange, foldStateAt } from '../../src/sync/fold.ts'

interface Letter extends FoldedRecord {
  readonly text: string
}
type Change = StreamChange<Letter, Letter>

const record = (seqNum: number, text: string, timestamp = seqNum): Letter => ({ seqNum, text, timestamp })
const pending = (number: number, text: string) => ({ number, item: { text } })
const joined = (value: string, { text }: Letter) => value + text

const change = (part: Partial<Change>): Change => ({
  confirmed: [],
  position: part.confirmed === undefined ? 0 : (part.confirmed.at(-1)?.seqNum ?? -1) + 1,
  pending: [],
  isCaughtUp: true,
  ...part,
})

function next(state: FoldState<string, Letter>, part: Partial<Change>): FoldState<string, Letter> {
  const outcome = foldChange(state, change(part), joined)
  if (outcome.kind !== 'next') throw new Error(outcome.kind)
  return outcome.state
}

const EMPTY: FoldState<string, Letter> = foldStateAt('')

test('reduces only the new one of many pending records', () => {
  const waiting = [pending(1, 'x'), pending(2, 'y'), pending(3, 'z')]
  const before = next(EMPTY, { pending: waiting.slice(0, 2) })
  const seen: string[] = []
  foldChange(before, change({ pending: waiting }), (value, { text }) => {
    seen.push(text)
    return value + text
  })
  expect(seen).toEqual(['z'])
})

test('names the record at which the reducer throws', () => {
  const cause = new TypeError('no such thing')
  const fail = () => {
    throw cause
  }
  const confirmed = () => foldChange(EMPTY, change({ confirmed: [record(7, 'a')] }), fail)
  expect(confirmed).toThrow(
    expect.objectContaining({
      code: 'reducer_failed',
      seqNum: 7,
      cause,
      message: 'the reducer threw at record 7: no such thing',
    }),
  )
  const waiting = () => foldChange(EMPTY, change({ pending: [pending(4, 'x')] }), fail)
  expect(waiting).toThrow(
    expect.objectContaining({
      code: 'reducer_failed',
      seqNum: undefined,
      message: 'the reducer threw at pending record 4: no such thing',
    }),
  )
})

test('reports records that were trimmed before the fold saw them', () => {
  const state = next(EMPTY, { confirmed: [record(0, 'a')] })
  const trimmed = change({ start: 4, confirmed: [record(4, 'e')] })
  expect(foldChange(state, trimmed, joined)).toEqual({ kind: 'gap', from: 1, to: 4 })
  expect(foldChange(state, trimmed, joined, true)).toMatchObject({ state: { value: 'ae', position: 5 } })
  const empty = change({ start: 4, position: 4 })
  expect(foldChange(state, empty, joined)).toEqual({ kind: 'gap', from: 1, to: 4 })
})

test.each<[string, Partial<Change>]>([
  ['another timestamp', { start: 1, confirmed: [record(1, 'b', 9)] }],
  ['no record in its place', { start: 1, confirmed: [record(2, 'c')] }],
  ['a tail before the position', { position: 1 }],
  ['a reset', { isReset: true, confirmed: [record(2, 'c')] }],
])('recognizes another stream by %s', (_, part) => {
  const restored: FoldState<string, Letter> = foldStateAt('ab', 2, { seqNum: 1, timestamp: 1 })
  expect(foldChange(restored, change(part), joined)).toEqual({ kind: 'replaced' })
})

test('continues if the record to compare was trimmed', () => {
  const restored: FoldState<string, Letter> = foldStateAt('ab', 2, { seqNum: 1, timestamp: 1 })
  expect(next(restored, { start: 2, confirmed: [record(2, 'c')] }).value).toBe('abc')
  expect(next(restored, { start: 2, position: 2 }).value).toBe('ab')
})

test('a reset of a stream of which nothing was read changes nothing', () => {
  expect(next(EMPTY, { isReset: true, confirmed: [record(0, 'a')] }).value).toBe('a')
})

test('the value equals the reduction of confirmed and pending records after any changes', () => {
  const step = fc.record({ others: fc.nat(3), confirm: fc.nat(3), add: fc.nat(3), discard: fc.nat(9) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let state = EMPTY
      let number = 0
      let waiting: ReturnType<typeof pending>[] = []
      const stored: Letter[] = []
      for (const { others, confirm, add, discard } of steps) {
        const start = stored.length
        for (let i = 0; i < others; i++) stored.push(record(stored.length, `o${stored.length} `))
        for (const { item } of waiting.slice(0, confirm)) stored.push(record(stored.length, item.text))
        waiting = waiting.slice(confirm).filter((_, index) => index !== discard)
        for (let i = 0; i < add; i++) waiting.push(pending(number, `p${number++} `))
        const confirmed = stored.slice(start)
        state = next(state, { confirmed, position: stored.length, pending: [...waiting] })
        const texts = [...stored, ...waiting.map(({ item }) => item)].map(({ text }) => text)
        expect(state.value).toBe(texts.join(''))
        expect(state.confirmed).toBe(stored.map(({ text }) => text).join(''))
      }
    }),
  )
})
