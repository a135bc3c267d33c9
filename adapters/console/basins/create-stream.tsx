import { useState } from 'preact/hooks'
import { streamNameProblem } from '../../../src/model/names.ts'
import { streamConfigOf, streamFields } from '../config/model.ts'
import { StreamConfigFields } from '../config/stream-fields.tsx'
import { useConsole } from '../context.ts'
import { Dialog } from '../ui/dialog.tsx'
import { Field } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { useSubmit } from '../ui/use-submit.ts'

/** A form that creates a stream. */
export function CreateStream(props: {
  readonly basin: string
  readonly onClose: () => void
  readonly onCreated: (stream: string) => void
}) {
  const { basin, onClose, onCreated } = props
  const { client } = useConsole()
  const [name, setName] = useState('')
  const [fields, setFields] = useState(() => streamFields())
  const problem = name === '' ? undefined : streamNameProblem(name)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    const body = { stream: name, config: streamConfigOf(fields) }
    await client.json({ method: 'POST', path: ['streams'], basin, body })
    onCreated(name)
  })
  return (
    <Dialog title="Create stream" onClose={onClose}>
      <form onSubmit={onSubmit}>
        <Field label="Name" problem={problem} hint="1 to 512 bytes, such as orders/2026">
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
        <StreamConfigFields fields={fields} inherits="the basin" onChange={setFields} />
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
