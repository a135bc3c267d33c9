import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { GROUPS } from '../rows/index.ts'
import { peerVersions, versionIn } from './peers.ts'
import type { Settings } from './settings.ts'
import { round } from './statistics.ts'
import { markdownOf, type Row } from './table.ts'

/** Fills in `bench/page.template`. */
export function pageOf(rows: readonly Row[], settings: Settings): string {
  return readFileSync(join('bench', 'page.template'), 'utf8').replaceAll(
    /\{\{([a-z-]+)\}\}/g,
    (_, name: string) => {
      if (name === 'run') return descriptionOf(settings)
      if (name === 'missed') return missedOf(rows)
      const group = rows.filter((row) => row.name in GROUPS[name]!)
      return group.length === 0 ? 'Not measured in this run.' : markdownOf(group)
    },
  )
}

/** When, where and with which versions, one fact a line. */
function descriptionOf({ isQuick, rounds }: Settings): string {
  const [processor] = cpus()
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const peers = Object.entries({ ...peerVersions(), ...otherVersions() })
  return [
    `- Date: ${new Date().toISOString().slice(0, 10)}`,
    `- Machine: ${processor?.model.trim() ?? 'unknown processor'}, ${cpus().length} cores, ${memory}, ${process.platform}`,
    `- Node ${process.versions.node}, headwater ${versionIn('.')}`,
    ...peers.map(([peer, version]) => `- \`${peer}\` ${version}`),
    `- ${rounds} rounds${isQuick ? ', `--quick`: short turns and small sizes' : ''}`,
    // Other programs make ratios of wall time noisy.
    `- Load average: ${loadavg().map(round).join(', ')}`,
  ].join('\n')
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
