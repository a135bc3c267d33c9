import { useEffect } from 'preact/hooks'
import { arrayOf, objectOf, stringOf } from '../../../src/wire/json.ts'
import { useConsole } from '../context.ts'
import { formatCount, formatTime } from '../format.ts'
import { useLoad } from '../ui/async.ts'
import { DataTable, Link, Loading, Note, Problem } from '../ui/elements.tsx'
import type { UsageOf } from './metrics.ts'

const INTERVAL_MS = 2000

const PROTOCOLS: Readonly<Record<string, string>> = { events: 'Server-Sent Events', frames: 'Binary session' }

/** The sessions that read a stream, or the streams of a basin: how far behind, since when, and how. */
export function Followers({ of }: { readonly of: UsageOf }) {
  const { connection } = useConsole()
  const { basin = '', stream } = of
  const query = new URLSearchParams({ basin, ...(stream !== undefined && { stream }) })
  const { data, error, isLoading, reload } = useLoad(
    (signal) => connection.own(`/followers?${query}`, followersOf, signal),
    [basin, stream],
  )
  useEffect(() => {
    const timer = setInterval(reload, INTERVAL_MS)
    return () => clearInterval(timer)
  }, [])
  const streamLink = (one: Follower) => (
    <Link to={{ view: 'stream', basin, stream: one.stream, tab: 'followers' }}>{one.stream}</Link>
  )
  return (
    <section class="list">
      <Problem error={error} />
      {data === undefined && isLoading && <Loading />}
      {data?.length === 0 && <p class="empty">No session reads this now.</p>}
      {data !== undefined && data.length > 0 && (
        <DataTable
          label="Followers"
          columns={stream === undefined ? [['Stream', streamLink], ...COLUMNS] : COLUMNS}
          rows={data}
        />
      )}
      <Note>Up to 1,000 read sessions, the farthest behind first. Long polls are not listed.</Note>
    </section>
  )
}

type Follower = ReturnType<typeof followersOf>[number]

const COLUMNS: readonly (readonly [title: string, cell: (one: Follower) => string, className?: string])[] = [
  ['Client', ({ client }) => client],
  ['Behind', ({ behind }) => formatCount(behind), 'number'],
  ['Next', ({ next }) => formatCount(next), 'number secondary'],
  ['Protocol', ({ protocol }) => PROTOCOLS[protocol] ?? protocol, 'secondary'],
  ['Since', ({ since }) => formatTime(Date.parse(since), 'second')],
]

function followersOf(value: unknown) {
  return arrayOf(objectOf(value, 'reply').followers, 'followers').map((one) => {
    const { stream, protocol, client = '–', since, next_seq_num, behind } = objectOf(one, 'follower')
    return {
      stream: stringOf(stream, 'stream'),
      protocol: stringOf(protocol, 'protocol'),
      client: stringOf(client, 'client'),
      since: stringOf(since, 'since'),
      next: Number(next_seq_num),
      behind: Number(behind),
    }
  })
}
