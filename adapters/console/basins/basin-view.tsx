import type { StreamConfigInput } from '../../../src/model/config.ts'
import type { StreamInfo } from '../../../src/model/info.ts'
import { streamNameProblem } from '../../../src/model/names.ts'
import {
  BasinConfigFields,
  basinConfigOf,
  ConfigForm,
  Deletion,
  StreamConfigFields,
  streamConfigOf,
} from '../config.tsx'
import { useConsole } from '../context.ts'
import { NameList } from '../name-list.tsx'
import {
  BASIN_NUMBERS,
  basinNumbers,
  Facts,
  numberColumns,
  STREAM_NUMBERS,
  streamNumbers,
} from '../numbers.tsx'
import type { BasinTab } from '../route.ts'
import { CreateButton } from '../ui/dialog.tsx'
import { Link, Tabs } from '../ui/elements.tsx'
import { Followers } from '../usage/followers.tsx'
import { Usage } from '../usage/usage.tsx'

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
        <Facts titles={BASIN_NUMBERS} load={(signal) => basinNumbers(connection, basin, signal)} />
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
            load={(signal) => handle.config({ signal })}
            save={(values) => handle.reconfigure(basinConfigOf(values))}
          >
            {(config) => <BasinConfigFields config={config} />}
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

/** The streams of a basin. */
function StreamList({ basin }: { readonly basin: string }) {
  const { connection, navigate } = useConsole()
  const open = (stream: string) => navigate({ view: 'stream', basin, stream, tab: 'records' })
  return (
    <NameList<StreamInfo>
      noun="stream"
      load={(query, options) => connection.hw.basin(basin).listStreams(query, options)}
      nameOf={({ name }) => name}
      onOpen={open}
      columns={[
        {
          title: 'Name',
          sortBy: ({ name }) => name,
          cell: ({ name, cipher, deletedAt }) => (
            <>
              <Link to={{ view: 'stream', basin, stream: name, tab: 'records' }}>{name}</Link>
              {cipher !== null && <span class="hint">{cipher}</span>}
              {deletedAt !== null && <span class="tag">deleting</span>}
            </>
          ),
        },
        ...numberColumns(STREAM_NUMBERS),
      ]}
      loadNumbers={(stream, before, signal) => streamNumbers(connection, { basin, stream }, before, signal)}
      empty={
        <p class="empty">
          This basin has no streams. Create one, or append to one: a basin can create streams on first use.
        </p>
      }
      actions={
        <CreateButton
          noun="stream"
          hint="1 to 512 bytes, such as orders/2026"
          check={streamNameProblem}
          create={(name, values) =>
            connection.hw.basin(basin).createStream(name, streamConfigOf(values) as StreamConfigInput)
          }
          onCreated={open}
        >
          <StreamConfigFields inherited="Basin default" />
        </CreateButton>
      }
    />
  )
}
