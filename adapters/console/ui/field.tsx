import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

/** A labelled control, with a hint and a problem below it. */
export function Field(props: {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly problem?: string | undefined
  readonly children: (id: string, describedBy: string | undefined) => ComponentChildren
}) {
  const { label, hint, problem, children } = props
  const id = useId()
  const noteId = hint === undefined && problem === undefined ? undefined : `${id}-note`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, noteId)}
      {noteId !== undefined && (
        <p id={noteId} class={problem === undefined ? 'hint' : 'problem'}>
          {problem ?? hint}
        </p>
      )}
    </div>
  )
}

/** A select whose options are pairs of a value and its text. */
export function Select<Value extends string>(props: {
  readonly id?: string
  readonly label?: string
  readonly value: Value
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly onChange: (value: Value) => void
}) {
  const { id, label, value, options, onChange } = props
  return (
    <select
      id={id}
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value as Value)}
    >
      {options.map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** A checkbox with its label. */
export function Checkbox(props: {
  readonly label: ComponentChildren
  readonly checked: boolean
  readonly disabled?: boolean
  readonly onChange: (checked: boolean) => void
}) {
  const { label, checked, disabled = false, onChange } = props
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{label}</span>
    </label>
  )
}
