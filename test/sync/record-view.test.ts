import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RecordView } from '../../src/sync/record-view.ts'

interface Row {
  readonly key: string
}

const row = (key: string): Row => ({ key })
const keys = (rows: Iterable<Row>) => Array.from(rows, ({ key }) => key).join(' ')

test('a pending record becomes confirmed in its place', () => {
  const [a, b, c] = [row('a'), row('b'), row('c')]
  const before = RecordView.empty<Row>().next([a], [b, c], true)
  const confirmed = row('b')
  const after = before.next([confirmed], [c], true)
  expect(keys(after)).toBe('a b c')
  expect(after.confirmedLength).toBe(2)
  expect(after.change).toEqual({ index: 1, removed: 1, inserted: [confirmed] })
})

test('a view keeps its records while later views grow', () => {
  const first = RecordView.empty<Row>().next([row('a')], [], true)
  const second = first.next([row('b')], [], true)
  const other = first.next([row('c')], [], true)
  expect([keys(first), keys(second), keys(other)]).toEqual(['a', 'a b', 'a c'])
  expect(first.at(1)).toBeUndefined()
})

test('the changes of successive views give the list of the last one', () => {
  const step = fc.record({
    confirm: fc.nat(3),
    others: fc.nat(3),
    add: fc.nat(3),
    discard: fc.boolean(),
    trim: fc.nat(2),
    reset: fc.integer({ min: 0, max: 9 }).map((number) => number === 0),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      let count = 0
      let pending: Row[] = []
      let view = RecordView.empty<Row>()
      const list: Row[] = []
      const apply = (next: RecordView<Row>) => {
        view = next
        list.splice(view.change.index, view.change.removed, ...view.change.inserted)
        expect(list).toEqual(view.toArray())
        expect(Array.from({ length: view.length }, (_, index) => view.at(index))).toEqual(list)
      }
      for (const { confirm, others, add, discard, trim, reset } of steps) {
        if (reset) apply(RecordView.empty(view))
        const confirmed = pending.slice(0, confirm).map(({ key }) => row(key))
        const foreign = Array.from({ length: others }, () => row(`o${count++}`))
        pending = pending.slice(confirm)
        if (discard) pending = pending.slice(1)
        for (let index = 0; index < add; index++) pending.push(row(`p${count++}`))
        apply(view.next([...foreign, ...confirmed], [...pending], true))
        const trimmed = Math.min(trim, view.confirmedLength)
        if (trimmed > 0) apply(view.withoutFirst(trimmed))
      }
    }),
  )
})
