import type { StreamConfigInput } from '../../../src/model/config.ts'
import type { StreamInfo } from '../../../src/model/info.ts'
import { streamNameProblem } from '../../../src/model/names.ts'
import { BasinConfigFields, basinConfigOf, StreamConfigFields, streamConfigOf } from '../config.tsx'
import { useConsole } from '../context.ts'
import { NameList } from '../name-list.tsx'
import { loadNumbers, numberColumns, STREAM_NUMBERS } from '../numbers.tsx'
import { Configuration, ResourcePage } from '../resource-page.tsx'
import type { ConsoleRoute } from '../route.ts'
import { CreateButton } from '../ui/dialog.tsx'
import { Link } from '../ui/elements.tsx'

/** One basin: its streams, configuration and usage. */
export function BasinView({ route }: { readonly route: ConsoleRoute & { readonly view: 'basin' } }) {
  const { basin } = route
  const handle = useConsole().connection.hw.basin(basin)
  return (
    <ResourcePage
      route={route}
      parts={{
        streams: <StreamList basin={basin} />,
        configuration: (
          <Configuration of={{ basin }} handle={handle} changeOf={basinConfigOf}>
            {(config) => <BasinConfigFields config={config} />}
          </Configuration>
        ),
      }}
    />
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
      loadNumbers={(stream, before, signal) => loadNumbers(connection, { basin, stream }, before, signal)}
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
