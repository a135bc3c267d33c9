import { useState } from 'preact/hooks'
import { type BasinInfo, DEFAULT_LOCATION } from '../../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../../src/model/limits.ts'
import { basinNameProblem } from '../../../src/model/names.ts'
import { BasinConfigFields } from '../config/fields.tsx'
import { basinChangeOf, basinFields } from '../config/model.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { useLoad, useSubmit } from '../ui/async.ts'
import { Dialog } from '../ui/dialog.tsx'
import { SelectField, TextField } from '../ui/field.tsx'
import { Link } from '../ui/link.tsx'
import { NameList } from '../ui/list.tsx'
import { Problem } from '../ui/notice.tsx'
import { GettingStarted } from './getting-started.tsx'
import { createBasinIn, locationsOf } from './locations.ts'
import { numberColumns } from './number-columns.tsx'
import { basinNumbers, type Numbers } from './numbers.ts'

/** The basins of the server. */
export function BasinList() {
  const { connection, navigate, announce } = useConsole()
  const [isCreating, setCreating] = useState(false)
  const open = (basin: string) => navigate({ view: 'basin', basin, tab: 'streams' })
  return (
    <>
      <h1 tabIndex={-1}>Basins</h1>
      <NameList<BasinInfo, Numbers>
        noun="basin"
        version={0}
        load={(query, options) => connection.hw.listBasins(query, options)}
        nameOf={({ name }) => name}
        onOpen={open}
        columns={[
          {
            title: 'Name',
            sortBy: ({ name }) => name,
            cell: ({ name, location, deletedAt }) => (
              <>
                <Link to={{ view: 'basin', basin: name, tab: 'streams' }}>{name}</Link>
                {deletedAt !== null && <span class="tag">deleting</span>}
                {/* Every server without locations reports this one. */}
                {location !== '' && location !== DEFAULT_LOCATION && <span class="hint">{location}</span>}
              </>
            ),
          },
          ...numberColumns<BasinInfo>(['Stored', 'Appended', 'Last write', 'Retention']),
          {
            title: 'Created',
            isSecondary: true,
            sortBy: ({ createdAt }) => createdAt.getTime(),
            cell: ({ createdAt }) => formatDate(createdAt),
          },
        ]}
        loadValue={(name, _, signal) => basinNumbers(connection, name, signal)}
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
  const { sender } = useConsole().connection
  const [name, setName] = useState('')
  const [location, setLocation] = useState('')
  const [fields, setFields] = useState(() => ({ ...basinFields(), createOnAppend: true }))
  // Servers without locations reject this, and then there is nothing to choose.
  const locations = useLoad((signal) => locationsOf(sender, signal), [])
  const problem = name === '' ? undefined : basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    await createBasinIn(location || undefined, sender, name, basinChangeOf(fields))
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
            options={[['', 'Default'], ...locations.data!.map((one) => [one, one] as const)]}
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
