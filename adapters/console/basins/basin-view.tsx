import { ConfigForm, Deletion } from '../config/config-form.tsx'
import { BasinConfigFields } from '../config/fields.tsx'
import { basinChangeOf, basinFields } from '../config/model.ts'
import { useConsole } from '../context.ts'
import type { BasinTab } from '../route.ts'
import { Link, Tabs } from '../ui/link.tsx'
import { Followers } from '../usage/followers.tsx'
import { Usage } from '../usage/usage.tsx'
import { Facts } from './number-columns.tsx'
import { basinNumbers } from './numbers.ts'
import { StreamList } from './stream-list.tsx'

/** One basin: its streams, configuration and usage. */
export function BasinView({ basin, tab }: { readonly basin: string; readonly tab: BasinTab }) {
  const { connection, navigate, announce } = useConsole()
  const handle = connection.hw.basin(basin)
  return (
    <>
      <nav class="path" aria-label="Path">
        <Link to={{ view: 'basins' }}>Basins</Link>
      </nav>
      <div class="title">
        <h1 tabIndex={-1} title={basin}>
          {basin}
        </h1>
        <Facts
          columns={['Stored', 'Appended', 'Last write']}
          load={(_, signal) => basinNumbers(connection, basin, signal)}
        />
      </div>
      <Tabs
        label="Basin"
        current={tab}
        to={(to) => ({ view: 'basin', basin, tab: to })}
        tabs={[
          ['streams', 'Streams'],
          ['configuration', 'Configuration'],
          ['followers', 'Followers'],
          ['usage', 'Usage'],
        ]}
      />
      {tab === 'streams' && <StreamList basin={basin} />}
      {tab === 'configuration' && (
        <>
          <ConfigForm
            load={async (signal) => basinFields(await handle.storedConfig({ signal }))}
            save={async (fields) => basinFields(await handle.reconfigureStored(basinChangeOf(fields)))}
          >
            {(fields, onChange) => <BasinConfigFields fields={fields} onChange={onChange} />}
          </ConfigForm>
          <Deletion
            noun="basin"
            name={basin}
            contents="all of its streams and records"
            mustType
            onDelete={async () => {
              await handle.delete()
              announce(`Deleting ${basin}`)
              navigate({ view: 'basins' })
            }}
          />
        </>
      )}
      {tab === 'followers' && <Followers of={{ basin }} />}
      {tab === 'usage' && <Usage of={{ basin }} />}
    </>
  )
}
