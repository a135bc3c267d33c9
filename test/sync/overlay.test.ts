import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  EMPTY_OVERLAY,
  markOf,
  type Overlay,
  pendingOf,
  withOutbox,
  withPosition,
  withReached,
} from '../../src/sync/overlay.ts'

const mark = (number: number) => markOf({ number, nonce: 'nonce' })
const entries = (...numbers: number[]) =>
  numbers.map((number) => ({ number, batch: number, mark: mark(number), item: `r${number}` }))
const content = (numbers: readonly number[], examined: number, known: number, discarded: number[] = []) => ({
  waiting: entries(...numbers),
  examined,
  known,
  discarded: new Set(discarded),
})
const shown = (overlay: Overlay<string>) => pendingOf(overlay).map(({ number }) => number)

test('a confirmed record below the start of the view leaves when the view is past it', () => {
  let overlay = withOutbox<string>(EMPTY_OVERLAY, content([1], 0, 2))
  overlay = withOutbox(overlay, content([], 8, 2))
  expect(shown(withPosition(overlay, 7))).toEqual([1])
  expect(shown(withPosition(overlay, 8))).toEqual([])
})

test('a record that is reached reaches the earlier ones of its batch, and no later ones', () => {
  const batch = entries(2, 3, 4, 5).map((entry) => ({ ...entry, batch: 2 }))
  const outbox = { ...content([], 0, 6), waiting: [...entries(1), ...batch] }
  expect(shown(withReached(withOutbox(EMPTY_OVERLAY, outbox), [mark(4)]))).toEqual([1, 5])
  expect(shown(withOutbox(withReached<string>(EMPTY_OVERLAY, [mark(4)]), outbox))).toEqual([1, 5])
  const left = withOutbox(withOutbox(EMPTY_OVERLAY, outbox), content([1], 9, 6))
  expect(shown(withReached(left, [mark(4)]))).toEqual([1, 5])
})

test('numbers that the outbox can no longer name are not kept', () => {
  let overlay = withReached<string>(EMPTY_OVERLAY, [1, 2, 3].map(mark))
  overlay = withOutbox(overlay, content([3], 9, 4))
  expect([...overlay.reached]).toEqual([mark(3)])
})

test('a record of another writer that claims the number is not reached', () => {
  const forged = markOf({ number: 1, nonce: 'guess' })
  const before = withReached<string>(EMPTY_OVERLAY, [forged])
  const overlay = withReached(withOutbox(before, content([1], 0, 2)), [forged])
  expect(shown(overlay)).toEqual([1])
})

test('no record is shown twice or disappears, at whatever pace outbox and view read', () => {
  // Each record goes through: appended, known to the outbox, confirmed, examined by the outbox, reached by
  // the view. The outbox reads all of it from one log, so it knows a record before it examines it; the view
  // may be ahead of it.
  const step = fc.constantFrom('append', 'know', 'confirm', 'examine', 'reach')
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
      let [appended, known, confirmed, examined, reached] = [0, 0, 0, 0, 0]
      let overlay: Overlay<string> = EMPTY_OVERLAY
      for (const kind of steps) {
        if (kind === 'append') appended++
        else if (kind === 'know' && known < appended) known++
        else if (kind === 'confirm' && confirmed < appended) confirmed++
        else if (kind === 'examine' && examined < Math.min(confirmed, known)) examined++
        else if (kind === 'reach' && reached < confirmed) {
          overlay = withPosition(withReached(overlay, [mark(reached)]), reached + 1)
          reached++
        }
        if (kind === 'know' || kind === 'examine') {
          const waiting = Array.from({ length: known - examined }, (_, index) => examined + index)
          overlay = withOutbox(overlay, content(waiting, examined, known))
        }
        const confirmedShown = Array.from({ length: reached }, (_, number) => number)
        const all = [...confirmedShown, ...shown(overlay)]
        const missing = Array.from({ length: known }, (_, number) => number).filter((n) => !all.includes(n))
        expect([new Set(all).size, missing]).toEqual([all.length, []])
      }
    }),
  )
})
