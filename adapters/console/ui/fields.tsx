import type { ComponentChildren, InputHTMLAttributes, PartialInputHTMLAttributes } from 'preact'
import { useId, useState } from 'preact/hooks'
import { secondsOf } from '../format.ts'

/** The values of a form by the names of its controls. A checkbox that is not checked has none. */
export type FormValues = Readonly<Record<string, string | undefined>>

/** The values of a form. */
export function valuesOf(form: HTMLFormElement): FormValues {
  return Object.fromEntries(new FormData(form)) as FormValues
}

/** Attributes of an `<input>` of any type. */
interface InputAttributes extends PartialInputHTMLAttributes<HTMLInputElement> {
  readonly list?: string
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

/** The attributes of a whole number. */
export const WHOLE_NUMBER = { type: 'number', min: 0, max: Number.MAX_SAFE_INTEGER } as const

interface TextFieldProps extends InputAttributes {
  readonly label: string
  readonly hint?: ComponentChildren | undefined
  /** Returns the problem with a text, which keeps the form from being submitted. */
  readonly check?: ((value: string) => string | undefined) | undefined
}

/** A labelled `<input>` with its attributes. */
export function TextField(props: TextFieldProps) {
  const { label, hint, check, ...input } = props
  const [problem, setProblem] = useState<string>()
  return (
    <Field label={label} hint={hint} problem={problem}>
      {(control) => (
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          {...(input as InputHTMLAttributes)}
          {...control}
          onInput={({ currentTarget: field }) => {
            const found = field.value === '' ? undefined : check?.(field.value)
            field.setCustomValidity(found ?? '')
            setProblem(found)
          }}
        />
      )}
    </Field>
  )
}

/** A `<select>` with its options, pairs of a value and its text. */
interface SelectProps<Value extends string> {
  readonly name?: string | undefined
  readonly value: Value
  readonly options: readonly (readonly [value: Value, text: string])[]
  readonly onChange?: ((value: Value) => void) | undefined
}

/** A select, named by `label` or by the field that it is in. */
export function Select<Value extends string>(
  props: SelectProps<Value> & {
    readonly control?: ControlAttributes | undefined
    readonly label?: string | undefined
  },
) {
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
export function SelectField<Value extends string>(
  props: SelectProps<Value> & {
    readonly label: string
    readonly hint?: ComponentChildren | undefined
    /** More that the chosen option needs. */
    readonly children?: ComponentChildren | undefined
  },
) {
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

/** A duration such as `7 days`, or a word. Its placeholder is the meaning of an empty field. */
export function DurationField(props: TextFieldProps & { readonly word?: string }) {
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

/** A checkbox, or a radio button, with its label. */
export function Choice({ label, ...input }: InputAttributes & { readonly label: string }) {
  return (
    <label class="check">
      <input {...({ type: 'checkbox', ...input } as InputHTMLAttributes)} />
      <span>{label}</span>
    </label>
  )
}

/** Runs an action with the values of a form that is submitted, one at a time, and keeps its error. */
export function useSubmit(action: (values: FormValues) => Promise<void>) {
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
