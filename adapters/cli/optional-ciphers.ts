import { createRequire } from 'node:module'
import type { CipherSuite } from '../../src/index.ts'

const PACKAGE = 'libsodium-wrappers'

/**
 * Loads the ciphers that the runtime does not have: AEGIS-256. Its package is an optional dependency. If it
 * is missing, the engine opens, and a request that needs the cipher fails with an error that names the
 * package.
 */
export async function optionalCiphers(
  onError: (error: unknown) => void,
  load: () => Promise<typeof import('../aegis-256/index.ts')> = () => import('../aegis-256/index.ts'),
): Promise<readonly CipherSuite[]> {
  try {
    const { aegis256 } = await load()
    return [await aegis256()]
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_MODULE_NOT_FOUND') {
      return [unavailableCipher(`the package ${PACKAGE} is not installed on the server`)]
    }
    onError(error)
    return [unavailableCipher(`the package ${PACKAGE} failed to start on the server`)]
  }
}

/**
 * The same cipher for one command, loaded when it is first used: most commands use none, and loading it takes
 * longer than they do.
 */
export function lazyCipher(load = () => import('../aegis-256/index.ts')): CipherSuite {
  try {
    createRequire(import.meta.url).resolve(PACKAGE)
  } catch {
    return unavailableCipher(`the package ${PACKAGE} is not installed`)
  }
  let loading: Promise<CipherSuite> | undefined
  const suite = () => {
    loading ??= load().then(({ aegis256 }) => aegis256())
    return loading
  }
  return {
    name: 'aegis-256',
    seal: async (...args) => (await suite()).seal(...args),
    open: async (...args) => (await suite()).open(...args),
  }
}

function unavailableCipher(missing: string): CipherSuite {
  const fail = () => {
    throw new Error(missing)
  }
  return { name: 'aegis-256', missing, seal: fail, open: fail }
}
