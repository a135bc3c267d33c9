export type { Headwater } from '../../src/api/headwater.ts'
export { type ErrorCode, HeadwaterError } from '../../src/model/errors.ts'
export { connect } from './connect.ts'
export type { ClientLimits, ConnectOptions } from './options.ts'
