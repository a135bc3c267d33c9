import type { Operation } from '../../../src/model/operations.ts'
import type { GroupAccess, GroupLevel } from '../api/types.ts'

/** What an operation acts on: the streams of basins, basins, access tokens, or the account. */
export type Subject = 'streams' | 'basins' | 'tokens' | 'account'

/** An operation: its group, what it acts on, and what it does. */
export interface OperationWords {
  readonly group: readonly [GroupLevel, GroupAccess]
  readonly subject: Subject
  readonly does: string
}

function words(level: GroupLevel, access: GroupAccess, subject: Subject, does: string): OperationWords {
  return { group: [level, access], subject, does }
}

/** Every operation (docs/protocol.md "Operations"). */
export const OPERATION_WORDS: Readonly<Record<Operation, OperationWords>> = {
  read: words('stream', 'read', 'streams', 'read records'),
  'check-tail': words('stream', 'read', 'streams', 'check the tail'),
  'stream-metrics': words('stream', 'read', 'streams', 'see usage'),
  append: words('stream', 'write', 'streams', 'append records'),
  trim: words('stream', 'write', 'streams', 'trim'),
  fence: words('stream', 'write', 'streams', 'fence'),
  'list-streams': words('basin', 'read', 'streams', 'list them'),
  'get-stream-config': words('basin', 'read', 'streams', 'read the configuration'),
  'create-stream': words('basin', 'write', 'streams', 'create'),
  'delete-stream': words('basin', 'write', 'streams', 'delete'),
  'reconfigure-stream': words('basin', 'write', 'streams', 'change the configuration'),
  'basin-metrics': words('basin', 'read', 'basins', 'see usage'),
  'list-basins': words('account', 'read', 'basins', 'list them'),
  'get-basin-config': words('account', 'read', 'basins', 'read the configuration'),
  'create-basin': words('account', 'write', 'basins', 'create'),
  'delete-basin': words('account', 'write', 'basins', 'delete'),
  'reconfigure-basin': words('account', 'write', 'basins', 'change the configuration'),
  'list-access-tokens': words('account', 'read', 'tokens', 'list them'),
  'issue-access-token': words('account', 'write', 'tokens', 'issue'),
  'revoke-access-token': words('account', 'write', 'tokens', 'revoke'),
  'account-metrics': words('account', 'read', 'account', 'see usage'),
  'list-locations': words('account', 'read', 'account', 'list locations'),
  'get-default-location': words('account', 'read', 'account', 'see the default location'),
  'set-default-location': words('account', 'write', 'account', 'set the default location'),
}

/** The names of all operations, by what they act on. */
export const OPERATION_NAMES = Object.keys(OPERATION_WORDS) as Operation[]
