/** Takes the place of `src/index.ts` in tests of the API that run through a client. */
export * from '../../../src/index.ts'
export { openConnected as open } from './open.ts'
