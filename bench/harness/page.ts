import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { join } from 'node:path'
import { GROUPS } from '../rows/index.ts'
import { peerVersions, versionIn } from './peers.ts'
import type { MeasuredRow, Results } from './results.ts'
import { markdownOf, type Row } from './table.ts'

/** Fills in `bench/page.template`. */
export function pageOf({ environment, rows }: Results): string {
  return readFileSync(join('bench', 'page.template'), 'utf8').replaceAll(
    /\{\{([a-z-]+)\}\}/g,
    (_, name: string) => {
      if (name === 'environment') return environment.map((line) => `- ${line}`).join('\n')
      if (name === 'missed') return missedOf(rows)
      const group = rows.filter((row) => row.name in GROUPS[name]!)
      return group.length === 0 ? 'Not measured.' : `${markdownOf(group)}\n\n${conditionsOf(group)}`
    },
  )
}

/** The machine and the versions, one fact a line. */
export function currentEnvironment(): string[] {
  const [processor] = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const peers = Object.entries({ ...peerVersions(), ...otherVersions() })
  return [
    `Machine: ${processor?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores, ${memory}, ${process.platform}`,
    `Node ${process.versions.node}, headwater ${versionIn('.')}`,
    ...peers.map(([peer, version]) => `\`${peer}\` ${version}`),
  ]
}

/** Says when and how the rows of a table were measured. */
function conditionsOf(rows: readonly MeasuredRow[]): string {
  const runs = new Map<string, MeasuredRow[]>()
  for (const row of rows) {
    const { date, rounds, isQuick } = row.measured
    const run = [date, rounds === 1 ? '1 round' : `${rounds} rounds`, ...(isQuick ? ['`--quick`'] : [])].join(
      ', ',
    )
    runs.set(run, [...(runs.get(run) ?? []), row])
  }
  const lines = [...runs].map(([run, measured]) => {
    // Other programs make ratios of wall time noisy.
    const loads = measured.map((row) => row.measured.load)
    const [low, high] = [Math.min(...loads), Math.max(...loads)].map((load) => load.toFixed(1))
    const load = `load average ${low === high ? low : `${low} to ${high}`}`
    const names = [...new Set(measured.map(({ name }) => `\`${name}\``))].join(', ')
    return `${run}, ${load}${runs.size > 1 ? `: ${names}` : ''}`
  })
  if (lines.length === 1) return wrapped(`Measured on ${lines[0]}.`)
  return `Measured on\n\n${lines.map((line) => wrapped(`- ${line}`, '  ')).join('\n')}`
}

const LINE_WIDTH = 110

/** Breaks a line between words. */
function wrapped(line: string, indent = ''): string {
  const lines: string[] = []
  for (const word of line.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined) lines.push(word)
    else if (last.length + 1 + word.length > LINE_WIDTH) lines.push(indent + word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines.join('\n')
}

function otherVersions(): Readonly<Record<string, string>> {
  const versions: Record<string, string> = {
    '@s2-dev/streamstore': versionIn(join('node_modules', '@s2-dev', 'streamstore')),
    rxjs: versionIn(join('node_modules', 'rxjs')),
  }
  try {
    const redis = execFileSync('redis-server', ['--version'], { encoding: 'utf8' })
    versions['redis-server'] = /v=([\d.]+)/.exec(redis)?.[1] ?? 'unknown'
  } catch {
    // Its row says that it is not installed.
  }
  return versions
}

function missedOf(rows: readonly Row[]): string {
  const required = rows.filter(({ isMet }) => isMet !== undefined)
  const missed = required.filter(({ isMet }) => isMet === false)
  const names = missed.map(
    ({ name, against }) => `- \`${name}\`${against === '' ? '' : ` against ${against}`}`,
  )
  return `${required.length - missed.length} of ${required.length} required ratios are met. Missed:\n\n${names.join('\n') || '- none'}`
}
