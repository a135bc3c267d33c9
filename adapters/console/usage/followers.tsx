import { arrayOf, objectOf, stringOf } from '../../../src/wire/json.ts'
import { useConsole, useLoad } from '../context.ts'
import { formatCount, formatTime } from '../format.ts'
import { Link, LoadStatus } from '../ui/elements.tsx'
import { type Column, Table } from '../ui/table.tsx'
import type { UsageOf } from './metrics.ts'

const INTERVAL_MS = 2000

const PROTOCOLS: Readonly<Record<string, string>> = { events: 'Server-Sent Events', frames: 'Binary session' }

/** The sessions that read a stream, or the streams of a basin: how far behind, since when, and how. */
export function Followers({ of }: { readonly of: UsageOf }) {
  const { connection } = useConsole()
  const { basin = '', stream } = of
  const query = new URLSearchParams({ basin, ...(stream !== undefined && { stream }) })
  const loaded = useLoad(
    (signal) => connection.own(`/followers?${query}`, followersOf, signal),
    [basin, stream],
    INTERVAL_MS,
  )
  const followers = loaded.data ?? []
  const streamColumn: Column<Follower> = {
    title: 'Stream',
    cell: (one) => (
      <Link to={{ view: 'stream', basin, stream: one.stream, tab: 'followers' }}>{one.stream}</Link>
    ),
  }
  return (
    <section class="list">
      <LoadStatus of={loaded} />
      {loaded.data?.length === 0 && <p class="empty">No session reads this now.</p>}
      {followers.length > 0 && (
        <Table
          label="Followers"
          columns={stream === undefined ? [streamColumn, ...COLUMNS] : COLUMNS}
          rows={followers}
        />
      )}
      <p class="notice">Up to 1,000 read sessions, the farthest behind first. Long polls are not listed.</p>
    </section>
  )
}

type Follower = ReturnType<typeof followersOf>[number]

const COLUMNS: readonly Column<Follower>[] = [
  { title: 'Client', cell: ({ client }) => <span class="long">{client}</span> },
  { title: 'Behind', class: 'number', cell: ({ behind }) => formatCount(behind) },
  { title: 'Next', class: 'number secondary', cell: ({ next }) => formatCount(next) },
  { title: 'Protocol', class: 'secondary', cell: ({ protocol }) => PROTOCOLS[protocol] ?? protocol },
  { title: 'Since', cell: ({ since }) => formatTime(Date.parse(since), 'second') },
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
