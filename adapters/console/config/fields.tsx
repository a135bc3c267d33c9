import { DURATION_UNITS } from '../format.ts'
import { Checkbox, Select, SelectField } from '../ui/field.tsx'
import type { BasinFields, Duration, StreamFields } from './model.ts'

/** A number and its unit. */
export function DurationField(props: {
  readonly label: string
  readonly value: Duration
  readonly onChange: (value: Duration) => void
}) {
  const { label, value, onChange } = props
  return (
    <>
      <input
        class="short"
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
    </>
  )
}

/** The fields of a stream configuration. `inherited` is the text of an unset one. */
export function StreamConfigFields(props: {
  readonly fields: StreamFields
  readonly inherited: string
  readonly retentionHint?: string | undefined
  readonly onChange: (fields: StreamFields) => void
}) {
  const { fields, onChange } = props
  const inherited = ['', props.inherited] as const
  const set = <Name extends keyof StreamFields>(name: Name) => {
    return (value: StreamFields[Name]) => onChange({ ...fields, [name]: value })
  }
  return (
    <div class="fields">
      <SelectField
        label="Retention"
        hint={props.retentionHint}
        value={fields.retention}
        options={[inherited, ['age', 'For a time'], ['infinite', 'Forever']]}
        onChange={set('retention')}
      >
        {fields.retention === 'age' && (
          <DurationField label="Retention age" value={fields.age} onChange={set('age')} />
        )}
      </SelectField>
      <SelectField
        label="Delete when empty"
        value={fields.deleteOnEmpty}
        options={[inherited, ['off', 'Never'], ['after', 'After a time']]}
        onChange={set('deleteOnEmpty')}
      >
        {fields.deleteOnEmpty === 'after' && (
          <DurationField label="Empty for" value={fields.minAge} onChange={set('minAge')} />
        )}
      </SelectField>
      <SelectField
        label="Timestamps"
        value={fields.mode}
        options={[
          inherited,
          ['client-prefer', 'From the client, or arrival'],
          ['client-require', 'From the client, required'],
          ['arrival', 'Arrival'],
        ]}
        onChange={set('mode')}
      />
      <SelectField
        label="Future timestamps"
        value={fields.uncapped}
        options={[inherited, ['false', 'Capped at arrival'], ['true', 'Allowed']]}
        onChange={set('uncapped')}
      />
      <SelectField
        label="Storage class"
        value={fields.storageClass}
        options={[inherited, ['express', 'Express'], ['standard', 'Standard']]}
        onChange={set('storageClass')}
      />
    </div>
  )
}

/** The fields of a basin configuration. */
export function BasinConfigFields(props: {
  readonly fields: BasinFields
  readonly onChange: (fields: BasinFields) => void
}) {
  const { fields, onChange } = props
  return (
    <>
      <fieldset>
        <legend>Create streams on first use</legend>
        <div class="row-of-checks">
          <Checkbox
            label="By appends"
            checked={fields.createOnAppend}
            onChange={(createOnAppend) => onChange({ ...fields, createOnAppend })}
          />
          <Checkbox
            label="By reads"
            checked={fields.createOnRead}
            onChange={(createOnRead) => onChange({ ...fields, createOnRead })}
          />
        </div>
      </fieldset>
      <fieldset>
        <legend>Defaults of new streams</legend>
        <StreamConfigFields
          fields={fields.streams}
          inherited="Server default"
          retentionHint="The server default is 7 days, unless the server was started with another one."
          onChange={(streams) => onChange({ ...fields, streams })}
        />
      </fieldset>
      <SelectField
        label="Encryption of new streams"
        hint="Records are encrypted with a key that each request carries. Existing streams do not change."
        value={fields.cipher}
        options={[
          ['', 'None'],
          ['aes-256-gcm', 'AES-256-GCM'],
          ['aegis-256', 'AEGIS-256'],
        ]}
        onChange={(cipher) => onChange({ ...fields, cipher })}
      />
    </>
  )
}
