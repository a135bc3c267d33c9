import { lossyTextOf, utf8 } from '../../../src/model/bytes.ts'
import { idFrom, secureRandom } from '../../../src/runtime/random.ts'
import { keyBounds, randomVersion } from '../../../src/storage/commit-plan.ts'
import type { CatalogChange, Collection, Document, ListRange } from '../../../src/storage/contract.ts'
import { StorageConflict } from '../../../src/storage/errors.ts'
import { bytesOf, hexOf, numberOf, type PostgresRow } from './connections.ts'
import { type Database, prepared } from './database.ts'
import { DIVISION_BY_ZERO, UNIQUE_VIOLATION } from './failures.ts'
import { newLogRow } from './logs.ts'
import type { Tables } from './schema.ts'

/** Reads documents, and commits changes of documents and logs. */
export class PostgresCatalog {
  readonly #database: Database
  readonly #tables: Tables
  readonly #statements: ReturnType<typeof statementsOf>

  constructor(database: Database, tables: Tables) {
    this.#database = database
    this.#tables = tables
    this.#statements = statementsOf(tables)
  }

  async get(collection: Collection, key: string): Promise<Document | undefined> {
    const [row] = await this.#database.query(this.#statements.get, [collection, utf8(key)])
    return row && documentOf(row)
  }

  async list(collection: Collection, range: ListRange): Promise<Document[]> {
    const bounds = keyBounds(range)
    if (bounds === undefined) return []
    const { listAfter, listFrom } = this.#statements
    const rows = await this.#database.query(bounds.isFromExcluded ? listAfter : listFrom, [
      collection,
      bounds.from,
      bounds.to,
      range.limit,
    ])
    return rows.map(documentOf)
  }

  /**
   * Applies the changes in one statement: `planCommit` would have to read the documents first, and lock them
   * until a second round trip ends. A failed expectation rolls the statement back. A row with a random id
   * goes with them, so that a commit whose connection was lost can be told from one that did not happen.
   */
  async commit(changes: readonly CatalogChange[]): Promise<void> {
    const rows = rowsOf(changes)
    if (rows.size === 0) return
    const id = idFrom(secureRandom)
    const { text, values } = statementOf(this.#tables, rows, id)
    const expected = [DIVISION_BY_ZERO, UNIQUE_VIOLATION]
    const { isRepeated, rejectedWith } = await this.#database.run(text, values, expected)
    if (rejectedWith === undefined) return
    if (isRepeated) {
      const found = await this.#database.query(`SELECT 1 FROM ${this.#tables.commits} WHERE id = $1`, [id])
      if (found.length > 0) return
    }
    throw new StorageConflict('a document or log of the commit is not as expected')
  }
}

function statementsOf({ documents }: Tables) {
  const list = (comparison: string) =>
    prepared(`SELECT key, value, version FROM ${documents}
      WHERE collection = $1 AND key ${comparison} $2 AND key < $3 ORDER BY key LIMIT $4`)
  return {
    get: prepared(`SELECT key, value, version FROM ${documents} WHERE collection = $1 AND key = $2`),
    listFrom: list('>='),
    listAfter: list('>'),
  }
}

function documentOf({ key, value, version }: PostgresRow): Document {
  return { key: lossyTextOf(bytesOf(key)), value: JSON.parse(String(value)), version: numberOf(version) }
}

/**
 * Changes of one kind. `sql` makes them for the rows in `$n`, a JSON array, and returns a row for each change
 * that was made. A row that is checked stays locked until the commit, so that no other commit changes it.
 */
interface Step {
  readonly sql: (tables: Tables, parameter: string) => string
  /** The condition on what `sql` returned, besides for changes that expect nothing. */
  readonly holds?: (name: string, count: number) => string
}

function allMade(name: string, count: number): string {
  return `(SELECT count(*) FROM "${name}") = ${count}`
}

const STEPS = {
  putAny: {
    sql: ({ documents }, rows) => `INSERT INTO ${documents} (collection, key, value, version)
      SELECT c, decode(k, 'hex'), v, n FROM ${documentRows(rows)}
      ON CONFLICT (collection, key) DO UPDATE SET value = excluded.value, version = excluded.version`,
  },
  create: {
    sql: ({ documents }, rows) => `INSERT INTO ${documents} (collection, key, value, version)
      SELECT c, decode(k, 'hex'), v, n FROM ${documentRows(rows)}
      ON CONFLICT (collection, key) DO NOTHING RETURNING 1`,
    holds: allMade,
  },
  replace: {
    sql: ({ documents }, rows) => `UPDATE ${documents} AS d SET value = r.v, version = r.n
      FROM ${documentRows(rows)} WHERE ${IS_EXPECTED} RETURNING 1`,
    holds: allMade,
  },
  deleteAny: {
    sql: ({ documents }, rows) => `DELETE FROM ${documents} AS d
      USING ${documentRows(rows)} WHERE d.collection = r.c AND d.key = decode(r.k, 'hex')`,
  },
  delete: {
    sql: ({ documents }, rows) => `DELETE FROM ${documents} AS d
      USING ${documentRows(rows)} WHERE ${IS_EXPECTED} RETURNING 1`,
    holds: allMade,
  },
  check: {
    sql: ({ documents }, rows) => `SELECT 1 FROM ${documents} AS d
      JOIN ${documentRows(rows)} ON ${IS_EXPECTED} FOR SHARE OF d`,
    holds: allMade,
  },
  createLog: {
    sql: ({ logs }, rows) => `INSERT INTO ${logs}
      (id, epoch, seq_num, append_id, state, metered_bytes, is_deleted)
      SELECT decode(r.id, 'hex'), r.epoch, r.seq_num, '', r.state, 0, false FROM ${logRows(rows)}
      ON CONFLICT (id) DO NOTHING RETURNING 1`,
    holds: allMade,
  },
  setEpoch: {
    sql: ({ logs }, rows) => `UPDATE ${logs} AS l
      SET epoch = r.epoch, extensions = COALESCE(r.extensions, l.extensions),
        expires_at = CASE WHEN r.extensions IS NULL OR l.metered_bytes = 0 THEN l.expires_at ELSE 0 END
      FROM ${logRows(rows)} WHERE l.id = decode(r.id, 'hex') AND NOT l.is_deleted RETURNING 1`,
    holds: allMade,
  },
  // Changes a log with another tail as well, so that the commit is rolled back.
  deleteLog: {
    sql: ({ logs }, rows) => `UPDATE ${logs} AS l SET is_deleted = true, due_at = 0
      FROM ${logRows(rows)} WHERE l.id = decode(r.id, 'hex') AND NOT l.is_deleted
      RETURNING l.seq_num <> r.seq_num AS is_wrong`,
    holds: (name) => `NOT EXISTS (SELECT 1 FROM "${name}" WHERE is_wrong)`,
  },
} satisfies Record<string, Step>

type StepName = keyof typeof STEPS

const IS_EXPECTED = `d.collection = r.c AND d.key = decode(r.k, 'hex') AND d.version = r.e`

/** Collection, key, value, new version and expected version. */
function documentRows(parameter: string): string {
  return `json_to_recordset(${parameter}::json) AS r (c text, k text, v text, n bigint, e bigint)`
}

function logRows(parameter: string): string {
  const columns = 'id text, epoch bigint, seq_num bigint, state text, extensions text'
  return `json_to_recordset(${parameter}::json) AS r (${columns})`
}

/** The time of the server at which a statement began, in milliseconds: an index can be searched by it. */
export const STATEMENT_TIME = 'floor(extract(epoch FROM now()) * 1000)::bigint'

/** How long the ids of commits are kept, in milliseconds: far longer than a lost connection is retried. */
export const COMMIT_KEPT_MS = 3_600_000

function statementOf(
  tables: Tables,
  rows: ReadonlyMap<StepName, readonly object[]>,
  id: string,
): { readonly text: string; readonly values: readonly unknown[] } {
  const values: unknown[] = [id]
  const parts = [`"commit" AS (INSERT INTO ${tables.commits} VALUES ($1, ${STATEMENT_TIME}) RETURNING 1)`]
  const conditions = ['(SELECT count(*) FROM "commit") = 1']
  for (const [name, own] of rows) {
    const step: Step = STEPS[name]
    values.push(JSON.stringify(own))
    parts.push(`"${name}" AS (${step.sql(tables, `$${values.length}`)})`)
    if (step.holds) conditions.push(step.holds(name, own.length))
  }
  // Only an error rolls back what the other parts have changed.
  const text = `WITH ${parts.join(',\n')}
    SELECT 1 / (CASE WHEN ${conditions.join(' AND ')} THEN 1 ELSE 0 END) AS committed`
  return { text, values }
}

function rowsOf(changes: readonly CatalogChange[]): Map<StepName, object[]> {
  const rows = new Map<StepName, object[]>()
  for (const change of changes) {
    const [name, row] = 'logId' in change ? logRow(change) : documentRow(change)
    const own = rows.get(name)
    if (own === undefined) rows.set(name, [row])
    else own.push(row)
  }
  return rows
}

function documentRow(change: Exclude<CatalogChange, { readonly logId: string }>): [StepName, object] {
  const { kind, collection, key, expect } = change
  const row = { c: collection, k: hexOf(utf8(key)), n: randomVersion(), e: expect }
  if (kind === 'check') return ['check', row]
  if (kind === 'delete') return [expect === undefined ? 'deleteAny' : 'delete', row]
  const put = { ...row, v: JSON.stringify(change.value) }
  return [expect === undefined ? 'putAny' : expect === null ? 'create' : 'replace', put]
}

function logRow(change: Extract<CatalogChange, { readonly logId: string }>): [StepName, object] {
  const id = hexOf(utf8(change.logId))
  switch (change.kind) {
    case 'create-log':
      return ['createLog', { id, ...newLogRow(change.epoch, change.createdAt, change.start) }]
    case 'set-epoch': {
      const { epoch, extensions } = change
      return ['setEpoch', { id, epoch, ...(extensions && { extensions: JSON.stringify(extensions) }) }]
    }
    case 'delete-log':
      return ['deleteLog', { id, seq_num: change.expectSeqNum }]
  }
}
