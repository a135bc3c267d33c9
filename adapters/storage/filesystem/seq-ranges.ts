/** Sequence numbers from `from` up to, but without, `to`. */
export interface SeqRange {
  readonly from: number
  readonly to: number
}

/** Ascending, apart from each other. */
export type SeqRanges = readonly SeqRange[]

export const NO_RANGES: SeqRanges = []

/** Ranges that touch become one. */
export function addRange(ranges: SeqRanges, { from, to }: SeqRange): SeqRanges {
  const before = ranges.filter((range) => range.to < from)
  const after = ranges.filter((range) => range.from > to)
  const touched = ranges.slice(before.length, ranges.length - after.length)
  const united = {
    from: Math.min(from, touched[0]?.from ?? from),
    to: Math.max(to, touched.at(-1)?.to ?? to),
  }
  return [...before, united, ...after]
}

export function subtractRanges(ranges: SeqRanges, removed: SeqRanges): SeqRanges {
  let left = ranges
  for (const { from, to } of removed) {
    left = left.flatMap((range) => {
      if (range.to <= from || range.from >= to) return [range]
      const parts = [
        { from: range.from, to: from },
        { from: to, to: range.to },
      ]
      return parts.filter((part) => part.from < part.to)
    })
  }
  return left
}

/** Whether one of the ranges holds all of `range`. */
export function coversRange(ranges: SeqRanges, { from, to }: SeqRange): boolean {
  if (ranges.length === 0) return false
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (ranges[middle]!.to >= to) high = middle
    else low = middle + 1
  }
  return low < ranges.length && ranges[low]!.from <= from
}
