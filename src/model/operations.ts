/**
 * Every operation that a token can permit, in the order of lists (docs/protocol.md "Operations"). Persisted.
 */
export const OPERATIONS = [
  'list-basins',
  'create-basin',
  'delete-basin',
  'reconfigure-basin',
  'get-basin-config',
  'issue-access-token',
  'revoke-access-token',
  'list-access-tokens',
  'list-streams',
  'create-stream',
  'delete-stream',
  'get-stream-config',
  'reconfigure-stream',
  'check-tail',
  'append',
  'read',
  'trim',
  'fence',
  'account-metrics',
  'basin-metrics',
  'stream-metrics',
  'list-locations',
  'get-default-location',
  'set-default-location',
] as const

/** An operation that a token can permit. */
export type Operation = (typeof OPERATIONS)[number]

/** The levels of operation groups. */
export const OPERATION_LEVELS = ['account', 'basin', 'stream'] as const

/** A level of operation groups. */
export type OperationLevel = (typeof OPERATION_LEVELS)[number]
