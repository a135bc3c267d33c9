/** The vitest projects `handler` and `server` run tests of the API again, through a client. */
export const ACCESS = (process.env.TEST_ACCESS ?? 'engine') as 'engine' | 'handler' | 'server'
