import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { DURATION_UNITS } from '../format.ts'
import { useLoad, useSubmit } from '../ui/async.ts'
import { Confirm } from '../ui/dialog.tsx'
import { Checkbox, Select, SelectField } from '../ui/field.tsx'
import { Loading, Problem } from '../ui/notice.tsx'
import type { BasinFields, Duration, StreamFields } from './model.ts'

/** A form for a configuration that exists. */
export function ConfigForm<Fields>(props: {
  readonly load: (signal: AbortSignal) => Promise<Fields>
  /** Resolves to what the server now has. */
  readonly save: (fields: Fields) => Promise<Fields>
  readonly children: (fields: Fields, onChange: (fields: Fields) => void) => ComponentChildren
}) {
  const { load, save, children } = props
  const { announce } = useConsole()
  const loaded = useLoad(load, [])
  const [saved, setSaved] = useState<Fields>()
  const [edited, setEdited] = useState<Fields>()
  const current = saved ?? loaded.data
  const fields = edited ?? current
  const isChanged = JSON.stringify(fields) !== JSON.stringify(current)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    if (fields === undefined) return
    setSaved(await save(fields))
    setEdited(undefined)
    announce('Saved')
  })
  if (fields === undefined) return loaded.isLoading ? <Loading /> : <Problem error={loaded.error} />
  return (
    <form class="panel" onSubmit={onSubmit}>
      {children(fields, setEdited)}
      <Problem error={error} />
      <footer>
        <button type="submit" class="primary" disabled={isBusy || !isChanged}>
          Save
        </button>
        {isChanged && (
          <button type="button" disabled={isBusy} onClick={() => setEdited(undefined)}>
            Discard changes
          </button>
        )}
      </footer>
    </form>
  )
}

/** The end of a configuration: a button that deletes the resource after confirmation. */
export function Deletion(props: {
  readonly noun: string
  readonly name: string
  readonly contents: string
  /** Whether the name must be typed. */
  readonly mustType?: boolean | undefined
  readonly onDelete: () => Promise<void>
}) {
  const { noun, name, contents, mustType = false, onDelete } = props
  const [isConfirming, setConfirming] = useState(false)
  return (
    <section class="panel deletion">
      <h2>Delete this {noun}</h2>
      <p>Deletes it with {contents}. This cannot be undone.</p>
      <button type="button" class="danger" onClick={() => setConfirming(true)}>
        Delete {noun}
      </button>
      {isConfirming && (
        <Confirm
          title={`Delete ${noun}`}
          action={`Delete ${noun}`}
          name={mustType ? name : undefined}
          onClose={() => setConfirming(false)}
          onConfirm={onDelete}
        >
          <p>
            Deletes <strong>{name}</strong> with {contents}. This cannot be undone.
          </p>
        </Confirm>
      )}
    </section>
  )
}

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
