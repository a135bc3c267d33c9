import { useEffect, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { formatBytes, formatCount } from '../format.ts'
import { Sparkline } from '../ui/sparkline.tsx'

const INTERVAL_MS = 2000
const RATES_MAX = 60

/** Totals of the process since it started, and what it calls them. */
const TOTALS = [
  ['Records appended', 'headwater_appended_records_total', formatCount],
  ['Bytes appended', 'headwater_appended_bytes_total', formatBytes],
  ['Bytes read', 'headwater_read_bytes_total', formatBytes],
] as const

interface Sample {
  readonly at: number
  readonly totals: readonly number[]
}

/** Records and bytes per second over all basins; nothing where the server has no counters. */
export function Throughput() {
  const { connection } = useConsole()
  const [samples, setSamples] = useState<readonly Sample[]>([])
  useEffect(() => {
    const abort = new AbortController()
    const read = () =>
      connection.own('/metrics', totalsOf, abort.signal).then(
        (totals) => setSamples((before) => [...before, { at: performance.now(), totals }].slice(-RATES_MAX)),
        () => {},
      )
    read()
    const timer = setInterval(read, INTERVAL_MS)
    return () => {
      clearInterval(timer)
      abort.abort()
    }
  }, [connection])
  if (samples.length < 2) return null
  return (
    <dl class="numbers">
      {TOTALS.map(([title, , format], index) => {
        const rates = samples.slice(1).map(({ at, totals }, before) => {
          const { at: since, totals: earlier } = samples[before]!
          return Math.max(0, ((totals[index]! - earlier[index]!) * 1000) / (at - since))
        })
        return (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              <Sparkline values={rates} /> {format(Math.round(rates.at(-1)!))}/s
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

function totalsOf(text: unknown): number[] {
  return TOTALS.map(([, name]) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(String(text))?.[1] ?? 0))
}
