import { DURATION_UNITS } from '../format.ts'
import { Select } from '../ui/field.tsx'
import type { Duration } from './model.ts'

/** A number and its unit. */
export function DurationField(props: {
  readonly label: string
  readonly value: Duration
  readonly onChange: (value: Duration) => void
}) {
  const { label, value, onChange } = props
  return (
    <span class="duration">
      <input
        aria-label={label}
        inputMode="numeric"
        value={value.count}
        onInput={(event) => onChange({ ...value, count: event.currentTarget.value })}
      />
      <Select
        label={`Unit of ${label.toLowerCase()}`}
        value={String(value.unit)}
        options={DURATION_UNITS.map(([seconds, noun]) => [String(seconds), `${noun}s`] as const)}
        onChange={(unit) => onChange({ ...value, unit: Number(unit) })}
      />
    </span>
  )
}
