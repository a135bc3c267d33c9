import type { BasinConfigInput, StreamConfigInput } from '../../src/model/config.ts'
import { type BasinInfo, LOCATION, type StreamInfo } from '../../src/model/info.ts'
import { BASIN_NAME_BYTES_MIN_ON_POST } from '../../src/model/limits.ts'
import { basinNameProblem, streamNameProblem } from '../../src/model/names.ts'
import { BasinConfigFields, basinConfigOf, StreamConfigFields, streamConfigOf } from './config.tsx'
import { useConsole } from './context.ts'
import { formatTime } from './format.ts'
import { NameList } from './name-list.tsx'
import { BASIN_NUMBERS, loadNumbers, numberColumns, STREAM_NUMBERS } from './numbers.tsx'
import { Configuration, ResourcePage } from './resource-page.tsx'
import type { ConsoleRoute } from './route.ts'
import { appendCall, type CurlCall, curlCommand, readCall } from './snippets.ts'
import { CreateButton } from './ui/dialog.tsx'
import { CopyButton, Link, Scroll } from './ui/elements.tsx'

/** The basins of the server. */
export function BasinList() {
  const { connection, navigate } = useConsole()
  const open = (basin: string) => navigate({ view: 'basin', basin, tab: 'streams' })
  return (
    <>
      <h1 tabIndex={-1}>Basins</h1>
      <NameList<BasinInfo>
        noun="basin"
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
                {location !== '' && location !== LOCATION.name && <span class="hint">{location}</span>}
              </>
            ),
          },
          ...numberColumns(BASIN_NUMBERS),
          {
            title: 'Created',
            class: 'secondary',
            sortBy: ({ createdAt }) => createdAt.getTime(),
            cell: ({ createdAt }) => formatTime(createdAt.getTime(), 'minute'),
          },
        ]}
        loadNumbers={(basin, before, signal) => loadNumbers(connection, { basin }, before, signal)}
        empty={<GettingStarted />}
        actions={
          <CreateButton
            noun="basin"
            hint="8 to 48 lower-case letters, digits and hyphens. The name cannot be changed."
            check={(name) => basinNameProblem(name, BASIN_NAME_BYTES_MIN_ON_POST)}
            create={(name, values) =>
              connection.hw.createBasin(name, basinConfigOf(values) as BasinConfigInput)
            }
            onCreated={open}
          >
            <BasinConfigFields config={{ createStreamOnAppend: true }} />
          </CreateButton>
        }
      />
    </>
  )
}

const EXAMPLE_BASIN = 'my-basin'
const EXAMPLE_TARGET = { basin: EXAMPLE_BASIN, stream: 'greetings', encryptionKey: '' }
const STEPS: readonly (readonly [title: string, call: CurlCall])[] = [
  [
    'Create a basin, which holds streams',
    { method: 'PUT', path: `/basins/${EXAMPLE_BASIN}`, body: { config: { create_stream_on_append: true } } },
  ],
  ['Append a record to a stream', appendCall(EXAMPLE_TARGET, [{ body: 'hello' }], {})],
  ['Follow the stream', readCall(EXAMPLE_TARGET, { seqNum: 0, waitMs: Number.POSITIVE_INFINITY })],
]

const IN_PROCESS = `const stream = hw.basin('${EXAMPLE_BASIN}').stream('greetings')
await stream.append('hello')`

/** The first steps, shown for an empty server. */
function GettingStarted() {
  const { connection, hasAddress } = useConsole()
  const inTerminal = STEPS.map(([title, call]) => [title, curlCommand(call, connection)] as const)
  if (connection.isAuthorized)
    inTerminal.unshift(['Set the access token', "export HEADWATER_TOKEN='your access token'"])
  const steps = hasAddress ? inTerminal : [['Append in the code of the page', IN_PROCESS] as const]
  return (
    <section class="start">
      <h2>Nothing is stored yet</h2>
      <p>
        Basins hold streams of records. Create a basin above, or begin in {hasAddress ? 'a terminal' : 'code'}
        :
      </p>
      <ol>
        {steps.map(([title, command]) => (
          <li key={title}>
            <header>
              <h3>{title}</h3>
              <CopyButton text={() => command} class="quiet" />
            </header>
            <Scroll label={title}>
              <pre>{command}</pre>
            </Scroll>
          </li>
        ))}
      </ol>
    </section>
  )
}

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
