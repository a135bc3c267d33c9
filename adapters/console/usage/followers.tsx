import { useEffect } from 'preact/hooks'
import { arrayOf, objectOf, stringOf } from '../../../src/wire/json.ts'
import { useConsole } from '../context.ts'
import { formatCount, formatTime } from '../format.ts'
import { useLoad } from '../ui/async.ts'
import { Link, Loading, Note, Problem } from '../ui/elements.tsx'
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
  return (
    <section class="list">
      <Problem error={error} />
      {data === undefined && isLoading && <Loading />}
      {data?.length === 0 && <p class="empty">No session reads this now.</p>}
      {data !== undefined && data.length > 0 && (
        <table aria-label="Followers">
          <thead>
            <tr>
              {stream === undefined && <th scope="col">Stream</th>}
              <th scope="col">Client</th>
              <th scope="col" class="number">
                Behind
              </th>
              <th scope="col" class="number secondary">
                Next
              </th>
              <th scope="col" class="secondary">
                Protocol
              </th>
              <th scope="col">Since</th>
            </tr>
          </thead>
          <tbody>
            {data.map((one, index) => (
              <tr key={index}>
                {stream === undefined && (
                  <td>
                    <Link to={{ view: 'stream', basin, stream: one.stream, tab: 'followers' }}>
                      {one.stream}
                    </Link>
                  </td>
                )}
                <td>{one.client}</td>
                <td class="number">{formatCount(one.behind)}</td>
                <td class="number secondary">{formatCount(one.next)}</td>
                <td class="secondary">{PROTOCOLS[one.protocol] ?? one.protocol}</td>
                <td>{formatTime(Date.parse(one.since), 'second')}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Note>Up to 1,000 read sessions, the farthest behind first. Long polls are not listed.</Note>
    </section>
  )
}

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
