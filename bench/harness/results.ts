import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { MEASUREMENTS } from '../rows/index.ts'
import type { Row } from './table.ts'

/** How rows were measured. Rows of one page may come from several runs. */
export interface Conditions {
  /** `YYYY-MM-DD`. */
  readonly date: string
  readonly rounds: number
  readonly isQuick: boolean
  /** The load average of the last minute, when the measurement began. */
  readonly load: number
}

export interface MeasuredRow extends Row {
  readonly measured: Conditions
}

/** The content of `bench/results.json`, from which the page is made. */
export interface Results {
  /** The machine and the versions of the last run, a line each. */
  readonly environment: readonly string[]
  readonly rows: readonly MeasuredRow[]
}

export function readResults(path: string): Results {
  if (!existsSync(path)) return { environment: [], rows: [] }
  return JSON.parse(readFileSync(path, 'utf8')) as Results
}

export function writeResults(path: string, results: Results): void {
  writeFileSync(path, `${JSON.stringify(results, undefined, 2)}\n`)
}

/** Replaces the rows of the same measurements, and drops those of measurements that no longer exist. */
export function withRows({ rows }: Results, environment: readonly string[], added: readonly MeasuredRow[]) {
  const replaced = new Set(added.map(({ name }) => name))
  const all = [...rows.filter(({ name }) => !replaced.has(name)), ...added]
  return {
    environment,
    rows: Object.keys(MEASUREMENTS).flatMap((name) => all.filter((row) => row.name === name)),
  }
}
