import { useState } from 'preact/hooks'
import { basinNameProblem } from '../../../src/model/names.ts'
import type { BasinInfo } from '../api/types.ts'
import { BasinConfigFields } from '../config/fields.tsx'
import { basinConfigOf, basinFields } from '../config/model.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { useLoad, useSubmit } from '../ui/async.ts'
import { Dialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Link } from '../ui/link.tsx'
import { NameList } from '../ui/list.tsx'
import { Problem } from '../ui/notice.tsx'
import { GettingStarted } from './getting-started.tsx'

/** The shortest name that `POST` takes; other requests take shorter ones. */
const NAME_BYTES_MIN = 8

/** The basins of the server. */
export function BasinList() {
  const { client, navigate, announce } = useConsole()
  const [isCreating, setCreating] = useState(false)
  const open = (basin: string) => navigate({ view: 'basin', basin, tab: 'streams' })
  return (
    <>
      <h1 tabIndex={-1}>Basins</h1>
      <NameList<BasinInfo>
        noun="basin"
        version={0}
        load={async (query, signal) => {
          const call = { method: 'GET', path: ['basins'], query } as const
          const page = await client.json<{ basins: BasinInfo[]; has_more: boolean }>(call, signal)
          return { items: page.basins, hasMore: page.has_more }
        }}
        nameOf={({ name }) => name}
        onOpen={open}
        columns={[
          {
            title: 'Name',
            cell: ({ name }) => <Link to={{ view: 'basin', basin: name, tab: 'streams' }}>{name}</Link>,
          },
          {
            title: 'State',
            cell: ({ state, deleted_at }) => (deleted_at == null ? (state ?? 'active') : 'deleting'),
          },
          { title: 'Location', isSecondary: true, cell: ({ location }) => location ?? '–' },
          { title: 'Created', isSecondary: true, cell: ({ created_at }) => formatDate(created_at) },
        ]}
        empty={<GettingStarted onCreate={() => setCreating(true)} />}
        actions={
          <button type="button" class="primary" aria-keyshortcuts="c" onClick={() => setCreating(true)}>
            Create basin
          </button>
        }
      />
      {isCreating && (
        <CreateBasin
          onClose={() => setCreating(false)}
          onCreated={(basin) => {
            announce(`Created ${basin}`)
            open(basin)
          }}
        />
      )}
    </>
  )
}

function CreateBasin(props: { readonly onClose: () => void; readonly onCreated: (basin: string) => void }) {
  const { onClose, onCreated } = props
  const { client } = useConsole()
  const [name, setName] = useState('')
  const [location, setLocation] = useState('')
  const [fields, setFields] = useState(() => ({ ...basinFields(), createOnAppend: true }))
  // Servers without locations reject this, and then there is nothing to choose.
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
        <TextField
          label="Name"
          hint="8 to 48 lower-case letters, digits and hyphens. The name cannot be changed."
          problem={problem}
          isRequired
          value={name}
          onInput={setName}
        />
        {(locations.data?.length ?? 0) > 1 && (
          <SelectField
            label="Location"
            value={location}
            options={[['', 'Default'], ...locations.data!.map((one) => [one.name, one.name] as const)]}
            onChange={setLocation}
          />
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
