/** Every operation that a token can permit, in the order of wire-behaviour.md 9.4, which is also that of lists. Persisted: keep stable. */
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

export type Operation = (typeof OPERATIONS)[number]

export const OPERATION_LEVELS = ['account', 'basin', 'stream'] as const
export type OperationLevel = (typeof OPERATION_LEVELS)[number]
