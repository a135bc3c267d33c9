import { useState } from 'preact/hooks'
import { basinNameProblem } from '../../../src/model/names.ts'
import { BasinConfigFields } from '../config/basin-fields.tsx'
import { basinConfigOf, basinFields } from '../config/model.ts'
import { useConsole } from '../context.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field, Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { useLoad } from '../ui/use-load.ts'
import { useSubmit } from '../ui/use-submit.ts'

/** The names that `POST` takes are longer than those of other requests. */
const NAME_BYTES_MIN = 8

/** A form that creates a basin. */
export function CreateBasin(props: {
  readonly onClose: () => void
  readonly onCreated: (basin: string) => void
}) {
  const { onClose, onCreated } = props
  const { client } = useConsole()
  const [name, setName] = useState('')
  const [location, setLocation] = useState('')
  const [fields, setFields] = useState(() => ({ ...basinFields(), createOnAppend: true }))
  const locations = useLoad(
    (signal) => client.json<{ name: string }[]>({ method: 'GET', path: ['locations'] }, signal),
    [],
  )
  const problem = name === '' ? undefined : basinNameProblem(name, NAME_BYTES_MIN)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    const body = { basin: name, config: basinConfigOf(fields), ...(location !== '' && { location }) }
    await client.json({ method: 'POST', path: ['basins'], body })
    onCreated(name)
  })
  return (
    <Dialog title="Create basin" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <Field
          label="Name"
          problem={problem}
          hint="8 to 48 lower-case letters, digits and hyphens. The name cannot be changed."
        >
          {(id, describedBy) => (
            <input
              id={id}
              required
              autocomplete="off"
              spellcheck={false}
              aria-describedby={describedBy}
              value={name}
              onInput={(event) => setName(event.currentTarget.value)}
            />
          )}
        </Field>
        {(locations.data?.length ?? 0) > 1 && (
          <Field label="Location">
            {(id) => (
              <Select
                id={id}
                value={location}
                options={[['', 'Default'], ...locations.data!.map((one) => [one.name, one.name] as const)]}
                onChange={setLocation}
              />
            )}
          </Field>
        )}
        <BasinConfigFields fields={fields} onChange={setFields} />
        <Problem error={error} />
        <footer>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy || name === '' || problem !== undefined}>
            Create
          </button>
        </footer>
      </form>
    </Dialog>
  )
}
