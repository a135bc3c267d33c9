import { lowerBound } from '../../../../src/storage/ordered-list.ts'

/** Sequence numbers from `from` (inclusive) to `to` (exclusive). */
export interface SeqRange {
  readonly from: number
  readonly to: number
}

/** Ascending ranges with gaps between them. */
export type SeqRanges = readonly SeqRange[]

export const NO_RANGES: SeqRanges = []

/** Adds a range, joining it with those that it touches. */
export function addRange(ranges: SeqRanges, { from, to }: SeqRange): SeqRanges {
  const start = lowerBound(ranges, (range) => range.to >= from)
  const end = lowerBound(ranges, (range) => range.from > to)
  const united = {
    from: Math.min(from, ranges[start]?.from ?? from),
    to: Math.max(to, ranges[end - 1]?.to ?? to),
  }
  return ranges.slice(0, start).concat(united, ranges.slice(end))
}

/** The union of both lists, in one pass. Ranges of the second may touch. */
export function uniteRanges(ranges: SeqRanges, others: SeqRanges): SeqRanges {
  const united: SeqRange[] = []
  let i = 0
  let j = 0
  while (i < ranges.length || j < others.length) {
    const isFirst = j === others.length || (i < ranges.length && ranges[i]!.from <= others[j]!.from)
    const next = isFirst ? ranges[i++]! : others[j++]!
    const last = united.at(-1)
    if (last === undefined || last.to < next.from) united.push(next)
    else united[united.length - 1] = { from: last.from, to: Math.max(last.to, next.to) }
  }
  return united
}

/** The ranges without the removed ones, in one pass. Removed ranges may touch. */
export function subtractRanges(ranges: SeqRanges, removed: SeqRanges): SeqRanges {
  const left: SeqRange[] = []
  let next = 0
  for (const { from, to } of ranges) {
    let start = from
    while (next < removed.length && removed[next]!.to <= start) next++
    // The last removed range may extend into the next range.
    for (let i = next; i < removed.length && removed[i]!.from < to; i++) {
      next = i
      if (start < removed[i]!.from) left.push({ from: start, to: removed[i]!.from })
      start = Math.max(start, removed[i]!.to)
    }
    if (start < to) left.push({ from: start, to })
  }
  return left
}

/** Whether one of the ranges contains all of `range`. */
export function coversRange(ranges: SeqRanges, { from, to }: SeqRange): boolean {
  if (ranges.length === 0) return false
  const range = ranges[lowerBound(ranges, (one) => one.to >= to)]
  return range !== undefined && range.from <= from
}
