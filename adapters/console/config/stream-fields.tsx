import { Field, Select } from '../ui/field.tsx'
import { DurationField } from './duration-field.tsx'
import type { StreamFields } from './model.ts'

/** The fields of a stream configuration. `inherits` names what unset fields take their value from. */
export function StreamConfigFields(props: {
  readonly fields: StreamFields
  readonly inherits: string
  readonly onChange: (fields: StreamFields) => void
}) {
  const { fields, inherits, onChange } = props
  const inherited = ['', `Default of ${inherits}`] as const
  const set = <Name extends keyof StreamFields>(name: Name) => {
    return (value: StreamFields[Name]) => onChange({ ...fields, [name]: value })
  }
  return (
    <div class="fields">
      <Field label="Retention">
        {(id) => (
          <>
            <Select
              id={id}
              value={fields.retention}
              options={[inherited, ['age', 'For a time'], ['infinite', 'For ever']]}
              onChange={set('retention')}
            />
            {fields.retention === 'age' && (
              <DurationField label="Retention age" value={fields.age} onChange={set('age')} />
            )}
          </>
        )}
      </Field>
      <Field label="Storage class">
        {(id) => (
          <Select
            id={id}
            value={fields.storageClass}
            options={[inherited, ['express', 'Express'], ['standard', 'Standard']]}
            onChange={set('storageClass')}
          />
        )}
      </Field>
      <Field label="Timestamps">
        {(id) => (
          <Select
            id={id}
            value={fields.mode}
            options={[
              inherited,
              ['client-prefer', 'Of the client if given'],
              ['client-require', 'Of the client, required'],
              ['arrival', 'Of the arrival'],
            ]}
            onChange={set('mode')}
          />
        )}
      </Field>
      <Field label="Future timestamps">
        {(id) => (
          <Select
            id={id}
            value={fields.uncapped}
            options={[inherited, ['false', 'Limited to now'], ['true', 'Allowed']]}
            onChange={set('uncapped')}
          />
        )}
      </Field>
      <Field label="Delete when empty">
        {(id) => (
          <>
            <Select
              id={id}
              value={fields.deleteOnEmpty}
              options={[inherited, ['off', 'Never'], ['after', 'After a time']]}
              onChange={set('deleteOnEmpty')}
            />
            {fields.deleteOnEmpty === 'after' && (
              <DurationField label="Empty for" value={fields.minAge} onChange={set('minAge')} />
            )}
          </>
        )}
      </Field>
    </div>
  )
}
