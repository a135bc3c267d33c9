import { useConsole } from '../context.ts'
import { appendCall, type CurlCall, curlCommand, readCall } from '../curl.ts'
import { CopyButton } from '../ui/copy.tsx'
import { Scroll } from '../ui/notice.tsx'

interface Step {
  readonly title: string
  readonly command: string
}

const BASIN = 'my-basin'
const TARGET = { basin: BASIN, stream: 'greetings', encryptionKey: '' }
const STEPS: readonly (readonly [title: string, call: CurlCall])[] = [
  [
    'Create a basin, which holds streams',
    { method: 'PUT', path: `/basins/${BASIN}`, body: { config: { create_stream_on_append: true } } },
  ],
  ['Append a record to a stream', appendCall(TARGET, [{ body: 'hello' }], {})],
  ['Follow the stream', readCall(TARGET, { seqNum: 0, waitMs: Number.POSITIVE_INFINITY })],
]

const IN_PROCESS = `const stream = hw.basin('${BASIN}').stream('greetings')
await stream.append('hello')`

/** The first steps, shown for an empty server. */
export function GettingStarted({ onCreate }: { readonly onCreate: () => void }) {
  const { connection, hasAddress } = useConsole()
  const { isAuthorized, target } = connection
  const commands = STEPS.map(([title, call]) => ({
    title,
    command: curlCommand(call, target, isAuthorized),
  }))
  const token = { title: 'Set the access token', command: "export HEADWATER_TOKEN='your access token'" }
  const inTerminal: readonly Step[] = isAuthorized ? [token, ...commands] : commands
  const steps = hasAddress ? inTerminal : [{ title: 'Append in the code of the page', command: IN_PROCESS }]
  return (
    <section class="start">
      <h2>Nothing is stored yet</h2>
      <p>
        Basins hold streams of records.{' '}
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
