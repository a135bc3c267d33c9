/** The part of `classic-level` that the benchmarks use, so that they compile without it. */
declare module 'classic-level' {
  export interface BatchPut {
    readonly type: 'put'
    readonly key: Uint8Array
    readonly value: Uint8Array
  }

  export class ClassicLevel {
    constructor(path: string, options: { readonly keyEncoding: 'buffer'; readonly valueEncoding: 'buffer' })
    open(): Promise<void>
    put(key: Uint8Array, value: Uint8Array, options: { readonly sync: boolean }): Promise<void>
    batch(puts: readonly BatchPut[], options: { readonly sync: boolean }): Promise<void>
    close(): Promise<void>
  }
}
