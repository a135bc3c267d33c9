import { HeadwaterError } from '../../../model/errors.ts'

/** The message is the same for malformed, unknown, revoked and expired tokens. */
export function authnError(): HeadwaterError {
  return new HeadwaterError('authn', 'a valid access token is required')
}

export function tokenEndedError(): HeadwaterError {
  return new HeadwaterError('authn', 'the access token was revoked or has expired')
}
