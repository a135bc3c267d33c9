import { Checkbox, Field, Select } from '../ui/field.tsx'
import type { BasinFields } from './model.ts'
import { StreamConfigFields } from './stream-fields.tsx'

/** The fields of a basin configuration. */
export function BasinConfigFields(props: {
  readonly fields: BasinFields
  readonly onChange: (fields: BasinFields) => void
}) {
  const { fields, onChange } = props
  return (
    <>
      <fieldset>
        <legend>Creation of streams on first use</legend>
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
      </fieldset>
      <Field
        label="Encryption of new streams"
        hint="Records are encrypted with a key that each request carries. Streams that exist do not change."
      >
        {(id, describedBy) => (
          <span aria-describedby={describedBy}>
            <Select
              id={id}
              value={fields.cipher}
              options={[
                ['', 'None'],
                ['aes-256-gcm', 'AES-256-GCM'],
                ['aegis-256', 'AEGIS-256'],
              ]}
              onChange={(cipher) => onChange({ ...fields, cipher })}
            />
          </span>
        )}
      </Field>
      <fieldset>
        <legend>Defaults of new streams</legend>
        <StreamConfigFields
          fields={fields.streams}
          inherits="the server"
          onChange={(streams) => onChange({ ...fields, streams })}
        />
      </fieldset>
    </>
  )
}
