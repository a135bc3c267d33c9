import { useState } from 'preact/hooks'
import { Select } from '../ui/field.tsx'
import type { Start } from './tail.ts'

/** Chooses the first record that is shown. */
export function StartForm({ onStart }: { readonly onStart: (start: Start) => void }) {
  const [kind, setKind] = useState<keyof Start>('tailOffset')
  const [count, setCount] = useState('100')
  const [time, setTime] = useState(() => localTime(Date.now() - 3_600_000))
  const value = kind === 'timestamp' ? Date.parse(time) : Number(count)
  const isValid = kind === 'timestamp' ? value >= 0 : /^[0-9]+$/.test(count) && Number.isSafeInteger(value)
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault()
        if (isValid) onStart({ [kind]: value })
      }}
    >
      <Select
        label="Start from"
        value={kind}
        options={[
          ['tailOffset', 'Records before the tail'],
          ['seqNum', 'Sequence number'],
          ['timestamp', 'Time'],
        ]}
        onChange={setKind}
      />
      {kind === 'timestamp' ? (
        <input
          type="datetime-local"
          step="1"
          aria-label="Time"
          value={time}
          onInput={(event) => setTime(event.currentTarget.value)}
        />
      ) : (
        <input
          class="short"
          inputMode="numeric"
          aria-label={kind === 'seqNum' ? 'Sequence number' : 'Records before the tail'}
          aria-invalid={!isValid}
          value={count}
          onInput={(event) => setCount(event.currentTarget.value)}
        />
      )}
      <button type="submit" disabled={!isValid}>
        Start
      </button>
    </form>
  )
}

/** A local time as the field takes it, to the second. */
function localTime(ms: number): string {
  const date = new Date(ms)
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
