import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

/** The attributes that connect a control with its label, its hint and its problem. */
export interface ControlAttributes {
  readonly id: string
  readonly 'aria-describedby': string | undefined
  readonly 'aria-invalid': boolean
}

/** A labelled control, with a hint or a problem below it. */
export function Field(props: {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  readonly problem?: string | undefined
  readonly children: (control: ControlAttributes) => ComponentChildren
}) {
  const { label, hint, problem, children } = props
  const id = useId()
  const note = problem ?? hint
  const noteId = note === undefined ? undefined : `${id}-note`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': noteId, 'aria-invalid': problem !== undefined })}
      {noteId !== undefined && (
        <p id={noteId} class={problem === undefined ? 'hint' : 'problem'}>
          {note}
        </p>
      )}
    </div>
  )
}

/** A labelled line of text. */
export function TextField(props: {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  readonly problem?: string | undefined
  readonly value: string
  readonly onInput: (value: string) => void
  readonly isRequired?: boolean | undefined
  readonly isNumber?: boolean | undefined
}) {
  const { label, hint, problem, value, onInput, isRequired = false, isNumber = false } = props
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(control) => (
        <input
          {...control}
          inputMode={isNumber ? 'numeric' : undefined}
          required={isRequired}
          autocomplete="off"
          spellcheck={false}
          value={value}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

/** The options of a {@link Select}: pairs of a value and its text. */
export type Options<Value extends string> = readonly (readonly [value: Value, text: string])[]

/** A select, labelled by `label` or by the field that it is in. */
export function Select<Value extends string>(props: {
  readonly control?: ControlAttributes | undefined
  readonly label?: string | undefined
  readonly value: Value
  readonly options: Options<Value>
  readonly onChange: (value: Value) => void
}) {
  const { control, label, value, options, onChange } = props
  return (
    <select
      {...control}
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

/** A labelled select. */
export function SelectField<Value extends string>(props: {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  readonly value: Value
  readonly options: Options<Value>
  readonly onChange: (value: Value) => void
  /** The content that belongs to the chosen option. */
  readonly children?: ComponentChildren | undefined
}) {
  const { label, hint, value, options, onChange, children } = props
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <span class="controls">
          <Select control={control} value={value} options={options} onChange={onChange} />
          {children}
        </span>
      )}
    </Field>
  )
}

/** A checkbox with its label. */
export function Checkbox(props: {
  readonly label: ComponentChildren
  readonly checked: boolean
  readonly disabled?: boolean | undefined
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
