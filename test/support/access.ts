/** The vitest projects with these names run tests of the API again, through a client. */
export const ACCESS = (process.env.TEST_ACCESS ?? 'engine') as 'engine' | 'handler' | 'server'

/** Whether the client reaches its engine through the sockets of the system. */
export const OVER_SOCKETS = ACCESS === 'server'
