/** The part of `better-sqlite3` that the benchmarks use, so that they compile without it. */
declare module 'better-sqlite3' {
  export interface Statement {
    readonly reader: boolean
    all(...parameters: readonly unknown[]): unknown
    run(...parameters: readonly unknown[]): unknown
  }

  export default class Database {
    constructor(path: string)
    pragma(text: string): unknown
    exec(sql: string): this
    prepare(sql: string): Statement
    transaction<Argument>(work: (argument: Argument) => void): (argument: Argument) => void
    close(): void
  }
}
