import { HeadwaterError } from '../../model/errors.ts'

/** The same whatever is wrong with a token: nobody learns which ids exist (rulings.md "Tokens"). */
export function authnError(): HeadwaterError {
  return new HeadwaterError('authn', 'a valid access token is required')
}

export function tokenEndedError(): HeadwaterError {
  return new HeadwaterError('authn', 'the access token was revoked or has expired')
}
