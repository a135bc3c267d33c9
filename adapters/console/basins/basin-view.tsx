import { useState } from 'preact/hooks'
import type { BasinConfig } from '../api/types.ts'
import { BasinConfigFields } from '../config/basin-fields.tsx'
import { ConfigForm } from '../config/config-form.tsx'
import { basinConfigOf, basinFields } from '../config/model.ts'
import { useConsole } from '../context.ts'
import type { BasinTab } from '../route.ts'
import { Confirm } from '../ui/confirm.tsx'
import { Link, Tabs } from '../ui/link.tsx'
import { StorageSize } from '../usage/storage-size.tsx'
import { Usage } from '../usage/usage.tsx'
import { StreamList } from './stream-list.tsx'

/** One basin: its streams, configuration and usage. */
export function BasinView({ basin, tab }: { readonly basin: string; readonly tab: BasinTab }) {
  const { client, navigate, announce } = useConsole()
  const [isDeleting, setDeleting] = useState(false)
  const path = ['basins', basin]
  return (
    <>
      <nav class="path" aria-label="Path">
        <Link to={{ view: 'basins' }}>Basins</Link>
      </nav>
      <div class="title">
        <h1>{basin}</h1>
        <StorageSize of={{ basin }} />
        <span class="spacer" />
        <button type="button" class="quiet danger" onClick={() => setDeleting(true)}>
          Delete basin
        </button>
      </div>
      <Tabs
        label="Basin"
        current={tab}
        to={(to) => ({ view: 'basin', basin, tab: to })}
        tabs={[
          ['streams', 'Streams'],
          ['configuration', 'Configuration'],
          ['usage', 'Usage'],
        ]}
      />
      {tab === 'streams' && <StreamList basin={basin} />}
      {tab === 'configuration' && (
        <ConfigForm
          load={async (signal) =>
            basinFields(await client.json<BasinConfig>({ method: 'GET', path }, signal))
          }
          save={async (fields) => {
            const body = basinConfigOf(fields)
            return basinFields(await client.json<BasinConfig>({ method: 'PATCH', path, body }))
          }}
        >
          {(fields, onChange) => <BasinConfigFields fields={fields} onChange={onChange} />}
        </ConfigForm>
      )}
      {tab === 'usage' && <Usage of={{ basin }} />}
      {isDeleting && (
        <Confirm
          title="Delete basin"
          action="Delete basin"
          name={basin}
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await client.json({ method: 'DELETE', path })
            announce(`Deleting ${basin}`)
            navigate({ view: 'basins' })
          }}
        >
          <p>
            Deletes <strong>{basin}</strong> with all of its streams and records. This cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  )
}
