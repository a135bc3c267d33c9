/** A small line of values; nothing if there are fewer than two. It shows what the text beside it says. */
export function Sparkline({ values }: { readonly values: readonly number[] | undefined }) {
  if (values === undefined || values.length < 2) return null
  const top = Math.max(...values) || 1
  const step = 60 / (values.length - 1)
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)} ${(13 - (value / top) * 12).toFixed(1)}`,
  )
  return (
    <svg class="spark" viewBox="0 0 60 14" aria-hidden="true">
      <path d={`M${points.join('L')}`} />
    </svg>
  )
}
