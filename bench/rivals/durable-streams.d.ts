/** The part of `@durable-streams/server` that the benchmarks use, so that they compile without it. */
declare module '@durable-streams/server' {
  export class DurableStreamTestServer {
    constructor(options: { readonly port: number; readonly dataDir?: string })
    start(): Promise<string>
    stop(): Promise<void>
  }
}
