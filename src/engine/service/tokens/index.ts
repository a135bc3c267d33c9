import { copyAccessTokenInput } from '../../../model/access.ts'
import { HeadwaterError } from '../../../model/errors.ts'
import type { Catalog } from '../catalog.ts'
import type { TokenAccess } from '../token-access.ts'
import { Authenticator } from './authenticator.ts'
import { TokenService } from './token-service.ts'
import { TokenWatcher, type TokenWatcherContext } from './token-watch.ts'

interface TokenContext extends Omit<TokenWatcherContext, 'mayEndUnseen'> {
  /** Whether other engines may ever change tokens. */
  readonly shared: boolean
  /** Whether other engines may change tokens now. Never false again once it was true. */
  readonly isShared: () => boolean
}

/** Opens the access tokens of an engine. */
export function openTokens(catalog: Catalog, context: TokenContext): TokenAccess {
  const { session, shared, isShared, clock } = context
  /** Whether a change failed that may appear in the storage later. */
  let mayAppearLate = false
  const authenticator = new Authenticator(session, () => mayAppearLate || isShared(), clock)
  const service = new TokenService(session, catalog, authenticator, clock)
  const watcher = new TokenWatcher({ ...context, mayEndUnseen: () => mayAppearLate || shared })
  /** Also after a failure, which may have had an effect: tokens are looked up again. */
  const changed = async <Result>(change: Promise<Result>): Promise<Result> => {
    try {
      return await change
    } catch (error) {
      mayAppearLate ||= !HeadwaterError.is(error) || error.mayHaveEffects
      void watcher.checkNow()
      throw error
    } finally {
      authenticator.forget()
    }
  }
  return {
    authenticator,
    watch: (identity) => watcher.watch(identity),
    copyInput: copyAccessTokenInput,
    issue: (input, issuer) => service.issue(input, issuer),
    list: (query) => service.list(query),
    createRoot: () => service.createRoot(),
    async revoke(id) {
      await changed(service.revoke(id))
      watcher.onRevoked(id)
    },
    async setRoot(token) {
      watcher.onRootReplaced(await changed(service.setRoot(token)))
    },
    close: () => watcher.close(),
  }
}
