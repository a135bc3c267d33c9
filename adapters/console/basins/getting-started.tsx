import { type Call, curlCommand } from '../api/request.ts'
import { useConsole } from '../context.ts'
import { CopyButton } from '../ui/copy.tsx'
import { Scroll } from '../ui/notice.tsx'

interface Step {
  readonly title: string
  readonly command: string
}

const BASIN = 'my-basin'
const RECORDS: Pick<Call, 'path' | 'basin'> = { path: ['streams', 'greetings', 'records'], basin: BASIN }
const STEPS: readonly (readonly [title: string, call: Call])[] = [
  [
    'Create a basin, which holds streams',
    {
      method: 'PUT',
      path: ['basins', BASIN],
      body: { config: { create_stream_on_append: true } },
    },
  ],
  ['Append a record to a stream', { method: 'POST', ...RECORDS, body: { records: [{ body: 'hello' }] } }],
  ['Follow the stream', { method: 'GET', ...RECORDS, query: { seq_num: 0 }, accept: 'text/event-stream' }],
]

const IN_PROCESS = `const stream = hw.basin('${BASIN}').stream('greetings')
await stream.append('hello')`

/** What an empty server shows: how to begin. */
export function GettingStarted({ onCreate }: { readonly onCreate: () => void }) {
  const { client, hasAddress } = useConsole()
  const isAuthorized = client.token !== undefined
  const commands = STEPS.map(([title, call]) => ({
    title,
    command: curlCommand(call, client.target, isAuthorized),
  }))
  const token = { title: 'Set the access token', command: "export HEADWATER_TOKEN='your access token'" }
  const inTerminal: readonly Step[] = isAuthorized ? [token, ...commands] : commands
  const steps = hasAddress ? inTerminal : [{ title: 'Append in the code of the page', command: IN_PROCESS }]
  return (
    <section class="start">
      <h2>Nothing is stored yet</h2>
      <p>
        Records are appended to <strong>streams</strong>, which live in <strong>basins</strong>.{' '}
        <button type="button" class="link" onClick={onCreate}>
          Create a basin here
        </button>
        {hasAddress ? ', or begin in a terminal:' : ', or begin in code:'}
      </p>
      <ol>
        {steps.map(({ title, command }) => (
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
