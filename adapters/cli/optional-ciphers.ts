import type { CipherSuite } from '../../src/index.ts'

const PACKAGE = 'the package libsodium-wrappers'

/**
 * The ciphers that the command line has beside the runtime's own: AEGIS-256. Its package is an optional one; where it is missing, whoever asks the
 * server for the cipher is told so.
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
      return [standIn(`${PACKAGE} is missing on the server`)]
    }
    onError(error)
    return [standIn(`${PACKAGE} does not start on the server`)]
  }
}

function standIn(missing: string): CipherSuite {
  const refuse = () => {
    throw new Error(missing)
  }
  return { name: 'aegis-256', missing, seal: refuse, open: refuse }
}
