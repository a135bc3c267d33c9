export type { PostgresClient } from './client.ts'
export { type PostgresOptions, postgres } from './storage.ts'
