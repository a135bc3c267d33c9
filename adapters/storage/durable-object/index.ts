export type { ObjectStorage } from './database.ts'
export { durableObject } from './storage.ts'
