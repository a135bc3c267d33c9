/** The part of `better-sqlite3` that the benchmarks use, so that they compile without it. */
declare module 'better-sqlite3' {
  export interface Statement<Row> {
    run(...parameters: readonly (number | Uint8Array)[]): unknown
    get(...parameters: readonly (number | Uint8Array)[]): Row | undefined
    all(...parameters: readonly (number | Uint8Array)[]): Row[]
    /** Returns rows as arrays from now on. */
    raw(): this
  }

  export default class Database {
    constructor(path: string)
    pragma(text: string): unknown
    exec(sql: string): this
    prepare<Row = unknown>(sql: string): Statement<Row>
    transaction<Argument>(work: (argument: Argument) => void): (argument: Argument) => void
    close(): void
  }
}
