import type { ComponentChildren } from 'preact'
import { useId, useState } from 'preact/hooks'
import { secondsOf } from '../format.ts'

/** The values of a form by the names of its controls. A checkbox that is not checked has none. */
export type FormValues = Readonly<Record<string, string | undefined>>

/** The values of a form. */
export function valuesOf(form: HTMLFormElement): FormValues {
  return Object.fromEntries(new FormData(form)) as FormValues
}

/** The attributes that connect a control with its label, its hint and its problem. */
interface ControlAttributes {
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

/** A labelled line of text, or a whole number. */
export function TextField(props: {
  readonly label: string
  readonly name: string
  readonly hint?: ComponentChildren | undefined
  readonly initial?: string | undefined
  readonly placeholder?: string | undefined
  /** The id of a `<datalist>` with suggestions. */
  readonly list?: string | undefined
  /** Returns the problem with a text, which keeps the form from being submitted. */
  readonly check?: ((value: string) => string | undefined) | undefined
  readonly isRequired?: boolean | undefined
  readonly isNumber?: boolean | undefined
  /** The least number. Default 0. */
  readonly min?: number | undefined
  readonly onInput?: ((value: string) => void) | undefined
}) {
  const { label, name, hint, initial, placeholder, list, check, onInput } = props
  const { isRequired = false, isNumber = false, min = 0 } = props
  const [problem, setProblem] = useState<string>()
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(control) => (
        <input
          {...control}
          name={name}
          type={(isNumber ? 'number' : 'text') as 'text'}
          min={isNumber ? min : undefined}
          max={isNumber ? Number.MAX_SAFE_INTEGER : undefined}
          required={isRequired}
          autocomplete="off"
          spellcheck={false}
          placeholder={placeholder}
          list={list}
          defaultValue={initial}
          onInput={({ currentTarget: input }) => {
            const found = input.value === '' ? undefined : check?.(input.value)
            input.setCustomValidity(found ?? '')
            setProblem(found)
            onInput?.(input.value)
          }}
        />
      )}
    </Field>
  )
}

/** The options of a {@link Select}: pairs of a value and its text. */
type Options<Value extends string> = readonly (readonly [value: Value, text: string])[]

/** A select, labelled by `label` or by the field that it is in. */
export function Select<Value extends string>(props: {
  readonly control?: ControlAttributes | undefined
  readonly label?: string | undefined
  readonly name?: string | undefined
  readonly value: Value
  readonly options: Options<Value>
  readonly onChange?: ((value: Value) => void) | undefined
}) {
  const { control, label, name, value, options, onChange } = props
  return (
    <select
      {...control}
      aria-label={label}
      name={name}
      onChange={(event) => onChange?.(event.currentTarget.value as Value)}
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
  readonly name?: string | undefined
  readonly hint?: ComponentChildren | undefined
  readonly value: Value
  readonly options: Options<Value>
  readonly onChange?: ((value: Value) => void) | undefined
  /** More that the chosen option needs. */
  readonly children?: ComponentChildren | undefined
}) {
  const { label, hint, children, ...select } = props
  return (
    <Field label={label} hint={hint}>
      {(control) => (
        <span class="controls">
          <Select control={control} {...select} />
          {children}
        </span>
      )}
    </Field>
  )
}

const DURATIONS = ['1 hour', '1 day', '7 days', '30 days']

/** A duration such as `7 days`, or a word. */
export function DurationField(props: {
  readonly label: string
  readonly name: string
  readonly hint?: string | undefined
  readonly initial?: string | undefined
  /** The meaning of an empty field. */
  readonly placeholder: string
  readonly word?: string | undefined
}) {
  const { word, ...field } = props
  const id = useId()
  const check = (text: string) =>
    text === word || secondsOf(text) !== undefined
      ? undefined
      : `A number of days, hours, minutes or seconds${word ? `, or “${word}”` : ''}`
  return (
    <>
      <TextField {...field} list={id} check={check} />
      <datalist id={id}>
        {[...DURATIONS, ...(word ? [word] : [])].map((text) => (
          <option key={text} value={text} />
        ))}
      </datalist>
    </>
  )
}

/** A checkbox with its label. */
export function Checkbox(props: {
  readonly label: ComponentChildren
  readonly name?: string | undefined
  /** Its state at first. */
  readonly initial?: boolean | undefined
  /** Its state, if its owner decides. */
  readonly checked?: boolean | undefined
  readonly disabled?: boolean | undefined
  readonly onChange?: ((checked: boolean) => void) | undefined
}) {
  const { label, name, initial, checked, disabled = false, onChange } = props
  return (
    <label class="check">
      <input
        type="checkbox"
        name={name}
        defaultChecked={initial}
        disabled={disabled}
        onChange={(event) => onChange?.(event.currentTarget.checked)}
        {...(checked !== undefined && { checked })}
      />
      <span>{label}</span>
    </label>
  )
}

export interface Submit {
  readonly isBusy: boolean
  readonly error: Error | undefined
  /** Handles the event of a form. */
  onSubmit(event: Event): void
}

/** Runs an action with the values of a form that is submitted, one at a time, and keeps its error. */
export function useSubmit(action: (values: FormValues) => Promise<void>): Submit {
  const [isBusy, setBusy] = useState(false)
  const [error, setError] = useState<Error>()
  const onSubmit = (event: Event) => {
    event.preventDefault()
    if (isBusy) return
    const values = valuesOf(event.currentTarget as HTMLFormElement)
    setBusy(true)
    setError(undefined)
    // Also catches what the action throws before its first request.
    Promise.resolve()
      .then(() => action(values))
      .catch(setError)
      .finally(() => setBusy(false))
  }
  return { isBusy, error, onSubmit }
}
