import type { PostgresClient } from '../../../adapters/storage/postgres/index.ts'

/** Returns what a query results in, or undefined to run it. */
export type Intercept = (text: string, run: () => Promise<unknown>) => Promise<unknown> | undefined

/** A client that runs `intercept` in place of the queries for which it returns something. */
export function interceptingClient(client: PostgresClient, intercept: Intercept): PostgresClient {
  return {
    query: (text, values) => {
      const run = () => client.query(text, values as unknown[])
      return (intercept(text, run) ?? run()) as ReturnType<PostgresClient['query']>
    },
  }
}

export function sqlError(code: string): Error {
  return Object.assign(new Error(`error ${code}`), { code })
}
