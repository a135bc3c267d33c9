/** The part of Dexie that the benchmark uses, so that it compiles without it. */
declare module 'dexie' {
  export interface EntityTable<Row, _Key extends keyof Row> {
    bulkAdd(rows: readonly Row[]): Promise<unknown>
    orderBy(index: string): { toArray(): Promise<Row[]> }
  }

  export class Dexie {
    constructor(name: string, options: { readonly chromeTransactionDurability: 'strict' | 'relaxed' })
    version(number: number): { stores(schema: Readonly<Record<string, string>>): unknown }
    delete(): Promise<void>
  }
}
